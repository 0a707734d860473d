"""DeepSea of bsuite by name, as networks learn it: from pictures."""

import functools
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.envs.paper_problems import DIGITS, belongs
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional

EPISODES = 10_000
"""Episodes of bsuite's experiment for every size."""
LARGEST = 1_000
"""A picture has a byte for each of N² places, and the replay holds two pictures a step."""
STOCHASTIC = "-stochastic"


def _size(name: str) -> int | None:
    digits = name.removeprefix("DeepSea-").removesuffix(STOCHASTIC)
    return int(digits) if DIGITS.fullmatch(digits) else None


def _required_size(name: str) -> int:
    """Return the size in a name; raise `SurveyorError` if it is not one."""
    size = _size(name)
    if size is None or not 1 <= size <= LARGEST:
        raise SurveyorError(
            f"The size in '{name}' must be a whole number from 1 to {LARGEST:,}; for example "
            "'DeepSea-10' or 'DeepSea-10-stochastic'."
        )
    return size


def _stochastic(name: str) -> bool:
    return name.endswith(STOCHASTIC)


def _sea(name: str) -> Any:
    from surveyor.envs.sea import DeepSea

    return DeepSea(_required_size(name), _stochastic(name))


@functools.cache
def _make(name: str, protocol: str | None = None) -> "Functional":
    from surveyor.envs.functional import Functional

    return Functional.wrap(_sea(name))


FAMILY = Family(
    name="DeepSea",
    usage="DeepSea-<N>",
    summary="The chain with its N × N picture as observation; also DeepSea-<N>-stochastic.",
    matches=lambda name: belongs(name, "DeepSea", _size),
    canonical=lambda name: f"DeepSea-{_required_size(name)}" + _stochastic(name) * STOCHASTIC,
    make=_make,
    default_budget=lambda name: EPISODES * (_size(name) or 1),  # every episode has N steps
    steps_per_second=2_000.0,
    reference=lambda name: (0.0, _sea(name).optimal_return),
    scale="1 is the best mean return that there is",
    shows="episode",
    size=_size,
    candidates=lambda name: [f"DeepSea-{name.partition('-')[2] or 10}"],
)
FAMILIES = (FAMILY,)
