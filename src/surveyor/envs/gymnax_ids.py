"""The environments of gymnax with discrete actions, such as gymnax/CartPole-v1."""

import functools
from typing import TYPE_CHECKING

from surveyor.envs.families import Family
from surveyor.errors import SurveyorError, imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional

PREFIX = "gymnax/"
NUMBERED = ("FrozenLake-misc",)
"""Environments whose observations are the numbers of states."""


def _canonical(name: str) -> str:
    gymnax = imported("gymnax", "gymnax", "gymnax", name)
    if name.removeprefix(PREFIX) not in gymnax.registered_envs:
        raise unknown("environment", name, [PREFIX + each for each in gymnax.registered_envs])
    return name


@functools.cache  # runs with the same object share a compiled program
def _make(name: str, protocol: str | None = None) -> "Functional":
    from surveyor.envs.functional import Functional

    gymnax = imported("gymnax", "gymnax", "gymnax", _canonical(name))
    try:
        env, params = gymnax.make(name.removeprefix(PREFIX))
    except OSError as error:  # MNISTBandit downloads its pictures
        raise SurveyorError(f"The environment {name} could not be made: {error}") from None
    return Functional.wrap(env, params, name)


def _numbered(name: str) -> bool:
    return name.removeprefix(PREFIX) in NUMBERED


FAMILY = Family(
    name="gymnax",
    usage="gymnax/<Env>",
    summary="The environments of gymnax with discrete actions, such as gymnax/CartPole-v1.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=_canonical,
    make=_make,
    preset=lambda name: "numbered" if _numbered(name) else "classic",
    numbered=_numbered,
    steps_per_second=2_000.0,
)
FAMILIES = (FAMILY,)
