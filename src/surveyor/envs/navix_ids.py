"""Navix (Pignatelli et al. 2024), MiniGrid in JAX, by its ids, such as Navix-Empty-8x8-v0."""

import functools
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.errors import imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional

PREFIX = "Navix-"


def _load() -> Any:
    return imported("navix", "navix", "navix", "Navix")


def _canonical(name: str) -> str:
    known = _load().registry()
    if name not in known:
        raise unknown("environment", name, list(known))
    return name


@functools.cache  # runs with the same object share a compiled program
def _make(name: str, protocol: str | None = None) -> "Functional":
    from surveyor.envs.functional import Functional
    from surveyor.envs.stepping import Timesteps

    return Functional.wrap(Timesteps(_load().make(_canonical(name)), name, high=10), name=name)


FAMILY = Family(
    name="Navix",
    usage="Navix-<id>",
    summary="The grids of MiniGrid in JAX, such as Navix-Empty-8x8-v0.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=_canonical,
    make=_make,
    default_budget=lambda name: 500_000,
    preset=lambda name: "minatar",  # pictures of that size
    steps_per_second=1_500.0,
)
FAMILIES = (FAMILY,)
