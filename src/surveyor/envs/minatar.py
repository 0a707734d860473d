"""The five MinAtar games, through gymnax."""

import dataclasses
import functools
from typing import TYPE_CHECKING

from surveyor.envs.families import Family
from surveyor.errors import imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional

PREFIX = "MinAtar/"
GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
NAMES = [PREFIX + game for game in GAMES]


def _canonical(name: str) -> str:
    if name not in NAMES:
        raise unknown("environment", name, NAMES)
    return name


@functools.cache  # runs with the same object share a compiled program
def _make(name: str, protocol: str | None = None) -> "Functional":
    name = _canonical(name)
    from surveyor.envs.functional import Functional

    gymnax = imported("gymnax", "gymnax", "minatar", name)
    game, params = gymnax.make(f"{name.removeprefix(PREFIX)}-MinAtar")
    env = Functional.wrap(game, params, name)
    # Every channel is 0 or 1: one byte each in the replay.
    return dataclasses.replace(env, spec=dataclasses.replace(env.spec, dtype="bool", bounds=()))


FAMILY = Family(
    name="MinAtar",
    usage="MinAtar/<Game>",
    summary=", ".join(GAMES),
    matches=lambda name: name.startswith(PREFIX),
    canonical=_canonical,
    make=_make,
    default_budget=lambda name: 1_000_000,
    preset=lambda name: "minatar",
    steps_per_second=2_300.0,
    shows="episode",
    candidates=lambda name: NAMES,
)
FAMILIES = (FAMILY,)
