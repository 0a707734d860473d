"""Checkpoints: plain arrays in a NumPy archive, replaced in one step, never pickled."""

import io
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor.errors import SurveyorError

META = "meta"
BLANK = {"run": None, "records": 0, "seconds": 0.0}


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill at any moment, sees the old one or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def save(path: Path, tree: PyTree, meta: dict[str, Any]) -> None:
    """Write every array of the tree, by its place in it, and a little JSON."""
    buffer = io.BytesIO()
    arrays = {name: np.asarray(leaf) for name, leaf in _named(tree)}
    arrays[META] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(buffer, allow_pickle=False, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())


def load(path: Path, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
    """Read a checkpoint back into a tree of this structure, shapes and types."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = {**BLANK, **json.loads(arrays.pop(META).tobytes())}
    except Exception as error:  # whatever a damaged archive makes its reader say
        raise SurveyorError(
            f"The checkpoint '{path}' is damaged and cannot be read ({error}); "
            "delete it to start this run again from the beginning."
        ) from None
    expected = {name: (leaf.shape, np.dtype(leaf.dtype)) for name, leaf in _named(like)}
    if {name: (array.shape, array.dtype) for name, array in arrays.items()} != expected:
        raise SurveyorError(
            f"The checkpoint '{path}' does not fit this run: it was written with other "
            "hyperparameters, or by another version of surveyor."
        )
    leaves = [jnp.asarray(arrays[name]) for name in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), meta


def _named(tree: PyTree) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
