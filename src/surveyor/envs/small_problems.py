"""Small problems by name: RiverSwim-<N>, FrozenLake-8x8 and Lock-<N>."""

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.envs.paper_problems import DIGITS, belongs
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional

LARGEST = 1_000
LAKE = re.compile(r"FrozenLake-(4x4|8x8)(-firm)?")


@functools.cache  # runs with the same object share a compiled program
def _make(name: str, protocol: str | None = None) -> "Functional":
    from surveyor.envs.functional import Functional

    return Functional.wrap(_problem(name))


def _problem(name: str) -> Any:
    from surveyor.envs import small

    if found := LAKE.fullmatch(name):
        return small.FrozenLake(int(found[1][0]), found[2] is None)
    kind, _, size = name.partition("-")
    return {"RiverSwim": small.RiverSwim, "Lock": small.Lock}[kind](int(size))


def _size(kind: str, name: str) -> int | None:
    digits = name.removeprefix(f"{kind}-")
    return int(digits) if DIGITS.fullmatch(digits) else None


def _sized(kind: str, name: str) -> str:
    """Return the one spelling of a name; raise `SurveyorError` if its size is not one."""
    size = _size(kind, name)
    if size is None or not 2 <= size <= LARGEST:
        said = f"must be a whole number from 2 to {LARGEST:,}; for example '{kind}-12'."
        raise SurveyorError(f"The size in '{name}' {said}")
    return f"{kind}-{size}"


def _lake(name: str) -> str:
    if LAKE.fullmatch(name) is None:
        known = "FrozenLake-4x4, FrozenLake-8x8, and each with -firm"
        raise SurveyorError(f"There is no environment '{name}'; there are {known}.")
    return name


def _family(kind: str, canonical: Callable[[str], str], **more: Any) -> Family:
    return Family(
        name=kind,
        matches=lambda name: belongs(name, kind, functools.partial(_size, kind)),
        canonical=canonical,
        make=_make,
        reference=lambda name: (0.0, _problem(name).optimal_return),
        scale="1 is the best mean return that there is",
        candidates=lambda name: [f"{kind}-{name.partition('-')[2] or 12}"],
        **more,
    )


def _tables(kind: str, canonical: Callable[[str], str], **more: Any) -> Family:
    return _family(
        kind,
        canonical,
        preset=lambda name: "numbered",
        numbered=lambda name: True,
        steps_per_second=20_000.0,
        **more,
    )


FAMILIES = (
    _tables(
        "RiverSwim",
        functools.partial(_sized, "RiverSwim"),
        usage="RiverSwim-<N>",
        summary="Swim against a current of N states, or rest; chance decides often.",
        default_budget=lambda name: 50_000,
        size=functools.partial(_size, "RiverSwim"),
    ),
    _tables(
        "FrozenLake",
        _lake,
        usage="FrozenLake-8x8",
        summary="Gymnasium's lake in JAX, also -4x4; -firm does not slip.",
    ),
    _family(
        "Lock",
        functools.partial(_sized, "Lock"),
        usage="Lock-<N>",
        summary="A lock of N digits that jams at a wrong one, observed as bits.",
        default_budget=lambda name: 100_000,
        steps_per_second=2_000.0,
        size=functools.partial(_size, "Lock"),
    ),
)
