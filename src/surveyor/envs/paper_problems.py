"""The paper's problems: binary trees and chains of a size that is part of the name."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from surveyor.envs.families import Family
from surveyor.envs.gymnasium_ids import registered
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.base import Environment

DIGITS = re.compile("[0-9]{1,9}")


LARGEST = 10_000_000
"""States; tables of 20 features for as many take 7 GB."""


def tree_states(size: int) -> int:
    """Return the number of states of a tree."""
    return 2 * size + 1


def tree_episodes(size: int) -> int:
    """Return the paper's budget of figure 2."""
    return 5000


def chain_states(size: int) -> int:
    """Return the number of states of a chain."""
    return size**2 + 1


def chain_episodes(size: int) -> int:
    """Return ten times the paper's line log10 T = 2.5 log10 L - 0.95 (figure 3)."""
    return max(5000, round(10 * 10**-0.95 * size**2.5))


def _make(family: str, name: str) -> "Environment":
    from surveyor.envs.chain import Chain
    from surveyor.envs.tree import Tree

    size = _required_size(family, name)
    return Chain(size) if family == "Chain" else Tree(size, tied=family == "TiedTree")


def _required_size(family: str, name: str) -> int:
    """Return the size in a name; raise `SurveyorError` if it is not one."""
    _, dash, digits = name.partition("-")
    if not DIGITS.fullmatch(digits) or int(digits) < 1:
        given = f"not '{digits}'" if dash else "which is missing"
        raise SurveyorError(
            f"The size in '{name}' must be a whole number of at least 1, {given};"
            f" for example '{family}-10'."
        )
    states = (chain_states if family == "Chain" else tree_states)(int(digits))
    if states > LARGEST:
        raise SurveyorError(f"'{name}' is too large: it has {states:,} states.")
    return int(digits)


def _size(name: str) -> int | None:
    digits = name.rpartition("-")[2]
    return int(digits) if DIGITS.fullmatch(digits) else None


def belongs(name: str, family: str, size: Callable[[str], int | None]) -> bool:
    """Return whether a name is one of a family with sizes, or a misspelt one.

    Somebody's own Tree-v0 is neither.
    """
    if name.partition("-")[0] != family:
        return False
    return size(name) is not None or name not in registered()


def _family(family: str, preset: str, summary: str) -> Family:
    episodes = chain_episodes if family == "Chain" else tree_episodes
    return Family(
        name=family,
        usage=f"{family}-<L>",
        summary=summary,
        matches=lambda name: belongs(name, family, _size),
        canonical=lambda name: f"{family}-{_required_size(family, name)}",
        make=lambda name, protocol: _make(family, name),
        unit="episodes",
        default_budget=lambda name: episodes(_required_size(family, name)),
        preset=lambda name: preset,
        numbered=lambda name: True,
        reference=lambda name: (0.0, _make(family, name).optimal_return),
        scale="1 is the best return that there is",
        shows="map",
        size=_size,
        candidates=lambda name: [f"{family}-{name.partition('-')[2] or 10}"],
    )


FAMILIES = (
    _family("Tree", "tree", "L steps UP earn a reward of one, one DOWN ends the episode."),
    _family("TiedTree", "tree", "The tree with one action for UP in every state."),
    _family("Chain", "chain", "An L × L grid where only the way right pays: DeepSea."),
)
