"""The paper's problems: `make("Tree-100")`, `make("TiedTree-100")`, `make("Chain-40")`."""

import difflib
import re
from collections.abc import Callable

from surveyor.envs.base import Environment, Params
from surveyor.envs.chain import Chain
from surveyor.envs.tree import Tree
from surveyor.errors import SurveyorError, unknown

FAMILIES: dict[str, Callable[[int], Environment]] = {
    "Tree": Tree,
    "TiedTree": lambda size: Tree(size, tied=True),
    "Chain": Chain,
}
"""Every environment family by name; a size makes an environment of it."""


LARGEST = 10_000_000
"""States at the most: SU's tables for so many take 7 GB with 20 features."""


def make(name: str, seed: int = 0) -> tuple[Environment, Params]:
    """The environment of this name and its hidden action mapping for this seed.

    The mapping stays the same over episodes, in training and in evaluation.
    """
    env = named(name)
    return env, env.params(seed)


def named(name: str) -> Environment:
    """The environment of this name, which is the same for every seed."""
    family, size = _parse(name)
    env = FAMILIES[family](size)
    if env.spec.num_states > LARGEST:
        raise SurveyorError(f"'{name}' is too large: it has {env.spec.num_states:,} states.")
    return env


def resembles(name: str) -> bool:
    """Whether a name looks like one of these families, misspelt."""
    near = difflib.get_close_matches(name.partition("-")[0].lower(), ["tree", "tiedtree", "chain"])
    return bool(near) and re.fullmatch(r"[A-Za-z]+-[0-9.]*", name) is not None


def _parse(name: str) -> tuple[str, int]:
    family, dash, size = name.partition("-")
    if family not in FAMILIES:
        raise unknown("environment", name, [f"{known}-{size or 10}" for known in FAMILIES])
    if not re.fullmatch(r"[0-9]{1,9}", size) or int(size) < 1:
        said = f"not '{size}'" if dash else "which is missing"
        raise SurveyorError(
            f"The size in '{name}' must be a whole number of at least 1, {said};"
            f" for example '{family}-10'."
        )
    return family, int(size)


__all__ = ["FAMILIES", "Chain", "Environment", "Params", "Tree", "make", "named", "resembles"]
