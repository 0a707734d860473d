"""The paper's problems: binary trees and chains of a size that is part of the name."""

import re
from typing import TYPE_CHECKING

from surveyor.envs.families import Family
from surveyor.envs.gymnasium_ids import registered
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.base import Environment

DIGITS = re.compile("[0-9]{1,9}")


def _make(family: str, name: str) -> "Environment":
    from surveyor.envs.chain import Chain
    from surveyor.envs.tree import Tree

    _, dash, size = name.partition("-")
    if not DIGITS.fullmatch(size) or int(size) < 1:
        given = f"not '{size}'" if dash else "which is missing"
        raise SurveyorError(
            f"The size in '{name}' must be a whole number of at least 1, {given};"
            f" for example '{family}-10'."
        )
    env = Chain(int(size)) if family == "Chain" else Tree(int(size), tied=family == "TiedTree")
    if env.spec.num_states > 10_000_000:  # tables of 20 features for as many take 7 GB
        raise SurveyorError(f"'{name}' is too large: it has {env.spec.num_states:,} states.")
    return env


def _size(name: str) -> int | None:
    digits = name.rpartition("-")[2]
    return int(digits) if DIGITS.fullmatch(digits) else None


def _family(family: str, preset: str, summary: str) -> Family:
    return Family(
        name=family,
        usage=f"{family}-<L>",
        summary=summary,
        # Somebody's own Tree-v0 is not a misspelt tree.
        matches=lambda name: name.partition("-")[0] == family and name not in registered(),
        canonical=lambda name: _make(family, name).name,
        make=lambda name, protocol: _make(family, name),
        unit="episodes",
        default_budget=lambda name: _make(family, name).default_episodes,
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
