"""Modules of a user's own as hyperparameters: compared, hashed and described by their content."""

import dataclasses
import functools
import hashlib
import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from surveyor.errors import SurveyorError


class Own:
    """A user's Equinox module with its weights, as one value of an option."""

    def __init__(self, module: eqx.Module):
        self.module: Any = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, module
        )

    @classmethod
    def given(cls, value: Any) -> Any:
        """Return a module as `Own`, and everything else as it is."""
        if isinstance(value, eqx.Module):
            return cls(value)
        if isinstance(value, type) and issubclass(value, eqx.Module):
            raise SurveyorError(f"Give a module as torso, {value.__name__}(...), not its class.")
        if callable(value):
            raise SurveyorError(
                "A torso is a name or an Equinox module: put the function and its weights into an "
                "eqx.Module."
            )
        return value

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """Its class, its structure and a hash of its weights, as JSON."""
        kind = type(self.module)
        weights = hashlib.sha256()
        for leaf in jax.tree.leaves(eqx.filter(self.module, eqx.is_array)):
            weights.update(np.asarray(leaf).tobytes())
        return {
            "module": f"{kind.__module__}:{kind.__qualname__}",
            "name": f"{kind.__qualname__}({weights.hexdigest()[:8]})",
            "structure": _structure(self.module),
            "weights": weights.hexdigest(),
        }

    def same_structure(self, description: Any) -> bool:
        """Return whether a description is of this module, whatever its weights and its file."""
        mine = self.description["structure"]
        return isinstance(description, dict) and description.get("structure") == mine

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and _equal(self.module, other.module)

    def __hash__(self) -> int:
        return hash(json.dumps(self.description, sort_keys=True))

    def __repr__(self) -> str:
        return f"{type(self.module).__name__}({self.description['weights'][:8]})"


class Static:
    """The part of a module that is no array, as static data of a pytree."""

    def __init__(self, tree: Any):
        self.tree = tree
        self._key = json.dumps(_structure(tree), sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and _equal(self.tree, other.tree)

    def __hash__(self) -> int:
        return hash(self._key)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two modules are equal, without any operation that JAX would trace."""
    (leaves, kind), (others, other_kind) = jax.tree.flatten(one), jax.tree.flatten(other)
    if kind != other_kind:
        return False
    pairs = zip(leaves, others, strict=True)
    return all(np.array_equal(a, b) if eqx.is_array(a) else a is b or a == b for a, b in pairs)


def _structure(value: Any) -> Any:
    """Return what a module is made of as JSON: classes, shapes, names of functions, numbers."""
    if isinstance(value, functools.partial):
        return {"partial": [_structure(part) for part in (value.func, value.args, value.keywords)]}
    if hasattr(value, "__func__"):  # a method, which holds the module itself
        return _structure(value.__func__)
    if isinstance(value, eqx.Module):
        names = [field.name for field in dataclasses.fields(value)]
        kind = type(value).__qualname__
        return {kind: {name: _structure(getattr(value, name, None)) for name in names}}
    if isinstance(value, dict):
        return {str(key): _structure(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_structure(each) for each in value]
    if isinstance(value, jax.Array | np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if (code := getattr(value, "__code__", None)) is not None:  # a function, or a lambda
        held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        said = f"{code.co_code.hex()}{code.co_consts}{code.co_names}{_structure(held)}"
        return f"{value.__qualname__} {hashlib.sha256(said.encode()).hexdigest()[:8]}"
    for name in ("__qualname__", "__name__"):
        if isinstance(found := getattr(value, name, None), str):
            return f"{getattr(value, '__module__', '')}.{found}"
    return json.dumps(vars(value), default=str) if hasattr(value, "__dict__") else str(value)
