"""Navix (Pignatelli et al. 2024), MiniGrid in JAX, by its ids, such as Navix-Empty-8x8-v0."""

import functools
import re
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

    env = _load().make(_canonical(name))
    if protocol != "navix":
        env = _load().make(name, max_steps=_limit(name, env.height, env.width))
    return Functional.wrap(Timesteps(env, name), name=name)


def _limit(name: str, height: int, width: int) -> int:
    """Return MiniGrid's time limit of the grid with this name, in steps."""
    if name.startswith(f"{PREFIX}DoorKey"):
        return 10 * height * width
    if name.startswith(f"{PREFIX}FourRooms"):
        return 100
    if room := re.match(rf"{PREFIX}KeyCorridorS(\d+)", name):
        return 30 * int(room[1]) ** 2
    return 4 * height * width


FAMILY = Family(
    name="Navix",
    usage="Navix-<id>",
    summary="The grids of MiniGrid in JAX, such as Navix-Empty-8x8-v0.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=_canonical,
    make=_make,
    default_budget=lambda name: 500_000,
    preset=lambda name: "grid",
    protocols={
        "minigrid": "MiniGrid's time limits, such as 256 steps on 8 × 8 places",
        "navix": "Navix's own, 100 steps everywhere",
    },
    steps_per_second=1_500.0,
)
FAMILIES = (FAMILY,)
