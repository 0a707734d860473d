"""Read and write checkpoints: NumPy archives without pickles, replaced atomically."""

import contextlib
import errno
import json
import math
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.lib import format as npy

from surveyor.errors import SurveyorError

META = "meta"
BLANK = {"run": None, "records": 0, "seconds": 0.0, "more": {}}
"""Metadata of a checkpoint that was saved without any."""


@contextlib.contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces `path` in one step, so that readers never see a part of it."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)  # makes room for the metrics on a full disk
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"The disk is full: '{path}' was not written and keeps its previous content."
            raise SurveyorError(message) from None
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file in one step, so that readers never see a part of it."""
    with written_atomically(path) as file:
        file.write(content)


def save(path: Path, tree: PyTree, meta: dict[str, Any]) -> None:
    """Write the arrays of a tree, named by their paths in it, and `meta` as JSON."""
    arrays = {name: np.asarray(leaf) for name, leaf in _named(tree)}
    arrays[META] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    path.parent.mkdir(exist_ok=True)  # not its parents: a missing mount must not be replaced
    with written_atomically(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def load(path: Path, like: PyTree, *, part: bool = False) -> tuple[PyTree, dict[str, Any]]:
    """Return a checkpoint's tree, of the structure, shapes and types of `like`, and metadata.

    NumPy arrays in `like` are filled in place, so that a replay is in memory once; only their first
    rows need to have been saved. With `part`, saved rows beyond those in `like` are left out.
    """
    expected = dict(_named(like))
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()} - {META}
            with archive.open(f"{META}.npy") as member:
                meta = {**BLANK, **json.loads(npy.read_array(member).tobytes())}
            fitting = (_fits(archive, *item, part) for item in expected.items())
            fits = names == expected.keys() and all(fitting)
            leaves = [_filled(archive, *item) for item in expected.items()] if fits else []
    except Exception as error:  # a damaged archive can raise almost anything
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            raise
        raise SurveyorError(
            f"The checkpoint '{path}' is damaged and cannot be read ({error}); "
            "delete it to restart the run from the beginning."
        ) from None
    if not fits:
        raise SurveyorError(
            f"The checkpoint '{path}' does not fit this run: it was written with other "
            "hyperparameters or by another version of surveyor."
        )
    return jax.tree.unflatten(jax.tree.structure(like), leaves), meta


def _header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    newer = npy.read_magic(member) > (1, 0)
    return (npy.read_array_header_2_0 if newer else npy.read_array_header_1_0)(member)


def _fits(archive: zipfile.ZipFile, name: str, leaf: Any, part: bool) -> bool:
    with archive.open(f"{name}.npy") as member:
        shape, _, dtype = _header(member)
    same = len(shape) == leaf.ndim and dtype == np.dtype(leaf.dtype)
    if isinstance(leaf, np.ndarray) and leaf.ndim:
        return same and shape[1:] == leaf.shape[1:] and (part or shape[0] <= len(leaf))
    return same and shape == leaf.shape


def _filled(archive: zipfile.ZipFile, name: str, leaf: Any) -> Any:
    with archive.open(f"{name}.npy") as member:
        if not isinstance(leaf, np.ndarray):
            return jnp.asarray(npy.read_array(member))
        shape, fortran, _ = _header(member)
        if fortran or not leaf.flags.c_contiguous:
            raise ValueError("its arrays are not in row-major order")
        size = min(leaf.itemsize * math.prod(shape), leaf.nbytes)
        left = leaf.reshape(-1).view(np.uint8).data[:size]
        while left:
            if not (part := member.read(min(len(left), 1 << 20))):
                raise EOFError("unexpected end of file")
            left[: len(part)] = part
            left = left[len(part) :]
        member.read(1)  # reaching the end verifies the checksum
    return leaf


def _named(tree: PyTree) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
