"""Checkpoints: plain arrays in a NumPy archive, replaced in one step, never pickled."""

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor.errors import SurveyorError

META = "meta"
BLANK = {"run": None, "records": 0, "seconds": 0.0, "more": {}}


@contextlib.contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, so that a reader, or a kill at any moment, sees the old one or the new."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)  # a full disk has room again for the metrics
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise SurveyorError(
                f"The disk is full: '{path}' could not be written. What was there before is kept."
            ) from None
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file in one step."""
    with written_atomically(path) as file:
        file.write(content)


def save(path: Path, tree: PyTree, meta: dict[str, Any]) -> None:
    """Write every array of the tree, by its place in it, and a little JSON."""
    arrays = {name: np.asarray(leaf) for name, leaf in _named(tree)}
    arrays[META] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_atomically(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def load(path: Path, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
    """Read a checkpoint back into a tree of this structure, shapes and types.

    NumPy's arrays may have been saved in part, by their first rows; they are filled in place.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = {**BLANK, **json.loads(arrays.pop(META).tobytes())}
    except (OSError, MemoryError) as error:
        if not getattr(error, "errno", None) and isinstance(error, OSError):
            raise _damaged(path, error) from None
        raise
    except Exception as error:  # whatever a damaged archive makes its reader say
        raise _damaged(path, error) from None
    expected = dict(_named(like))
    if arrays.keys() != expected.keys() or not all(
        _fits(arrays[name], leaf) for name, leaf in expected.items()
    ):
        raise SurveyorError(
            f"The checkpoint '{path}' does not fit this run: it was written with other "
            "hyperparameters, or by another version of surveyor."
        )
    leaves = [_filled(arrays[name], leaf) for name, leaf in expected.items()]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), meta


def _damaged(path: Path, error: Exception) -> SurveyorError:
    return SurveyorError(
        f"The checkpoint '{path}' is damaged and cannot be read ({error}); "
        "delete it to start this run again from the beginning."
    )


def _fits(array: np.ndarray, leaf: Any) -> bool:
    same = array.ndim == leaf.ndim and array.dtype == np.dtype(leaf.dtype)
    if isinstance(leaf, np.ndarray) and leaf.ndim:
        return same and array.shape[1:] == leaf.shape[1:] and len(array) <= len(leaf)
    return same and array.shape == leaf.shape


def _filled(array: np.ndarray, leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return jnp.asarray(array)
    leaf[slice(len(array)) if leaf.ndim else ()] = array
    return leaf


def _named(tree: PyTree) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
