"""The paper's problems: binary trees and chains of a size that is part of the name."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from surveyor.envs.family import Family
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.base import Environment

MAX_STATES = 10_000_000
"""Largest number of states: tables of 20 features for as many take 7 GB."""
SCALE = "1 is the best return that there is"


def _family(name: str, summary: str, preset: str, maker: "Callable[[int], Environment]") -> Family:
    def make(full: str, protocol: str | None = None):
        env = maker(_size(name, full))
        if env.spec.num_states > MAX_STATES:
            raise SurveyorError(f"'{full}' is too large: it has {env.spec.num_states:,} states.")
        return env

    def size(full: str) -> int | None:
        digits = full.rpartition("-")[2]
        return int(digits) if re.fullmatch("[0-9]{1,9}", digits) else None

    return Family(
        name=name,
        usage=f"{name}-<L>",
        summary=summary,
        matches=lambda full: full.partition("-")[0] == name and not _registered(full),
        canonical=lambda full: make(full).name,
        make=make,
        unit="episodes",
        default_budget=lambda full: make(full).default_episodes,
        preset=lambda full: preset,
        reference=lambda full: (0.0, make(full).optimal_return),
        scale=SCALE,
        shows="map",
        size=size,
        candidates=lambda full: [f"{name}-{full.partition('-')[2] or 10}"],
    )


def _size(family: str, name: str) -> int:
    _, dash, size = name.partition("-")
    if not re.fullmatch("[0-9]{1,9}", size) or int(size) < 1:
        given = f"not '{size}'" if dash else "which is missing"
        raise SurveyorError(
            f"The size in '{name}' must be a whole number of at least 1, {given};"
            f" for example '{family}-10'."
        )
    return int(size)


def _registered(name: str) -> bool:
    """Return True if Gymnasium has this id: somebody's own Tree-v0 is not a misspelt tree."""
    import gymnasium

    return name in gymnasium.registry


def _tree(size: int) -> "Environment":
    from surveyor.envs.tree import Tree

    return Tree(size)


def _tied_tree(size: int) -> "Environment":
    from surveyor.envs.tree import Tree

    return Tree(size, tied=True)


def _chain(size: int) -> "Environment":
    from surveyor.envs.chain import Chain

    return Chain(size)


FAMILIES = (
    _family("Tree", "L steps UP earn a reward of one, one DOWN ends the episode.", "tree", _tree),
    _family("TiedTree", "The tree with one action for UP in every state.", "tree", _tied_tree),
    _family("Chain", "An L × L grid where only the way right pays: DeepSea.", "chain", _chain),
)
