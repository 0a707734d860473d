"""Environments: the paper's problems, and families of others by name.

`make("Tree-100")` makes one of the paper's problems; `register` adds a family of one's own. JAX is
imported when an environment is first made.
"""

import importlib
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import FAMILIES, Family, find, of, register

if TYPE_CHECKING:
    from surveyor.envs.base import Environment, Params, make, named
    from surveyor.envs.chain import Chain
    from surveyor.envs.tree import Tree

_LAZY = {"Chain": "chain", "Tree": "tree"}
_LAZY |= dict.fromkeys(("Environment", "Params", "make", "named"), "base")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'surveyor.envs' has no attribute '{name}'")
    return getattr(importlib.import_module(f"surveyor.envs.{_LAZY[name]}"), name)


__all__ = ["FAMILIES", "Chain", "Environment", "Family", "Params", "Tree"]
__all__ += ["find", "make", "named", "of", "register"]
