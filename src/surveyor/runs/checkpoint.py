"""Read and write checkpoints: NumPy archives without pickles, replaced atomically.

The rows of a replay are beside them; see `replay_log`.
"""

import contextlib
import errno
import json
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
BLANK = {"run": None, "records": 0, "seconds": 0.0, "more": {}, "log": None}
"""Metadata of a checkpoint that was saved without any."""


@contextlib.contextmanager
def full_disk_reported(path: Path) -> Iterator[None]:
    """Raise `SurveyorError` if the disk is too full to write `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"The disk is full: '{path}' was not written and keeps its previous content."
            raise SurveyorError(message) from None
        raise


@contextlib.contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces `path` in one step, so that readers never see a part of it."""
    temporary = path.with_name(path.name + ".tmp")
    with full_disk_reported(path):
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)  # makes room for the metrics on a full disk
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


def load(path: Path, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
    """Return a checkpoint's tree and metadata.

    The tree has the structure, shapes and types of `like`, and NumPy arrays where that has some.
    """
    expected = dict(_named(like))
    with _damage_reported(path), zipfile.ZipFile(path) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()} - {META}
        meta = _meta(archive)
        fits = names == expected.keys() and all(_fits(archive, *item) for item in expected.items())
        leaves = [_read(archive, *item) for item in expected.items()] if fits else []
    if not fits:
        raise misfit(path)
    return jax.tree.unflatten(jax.tree.structure(like), leaves), meta


def read_meta(path: Path) -> dict[str, Any]:
    """Return a checkpoint's metadata; blank if there is no checkpoint or it is damaged."""
    try:
        with _damage_reported(path), zipfile.ZipFile(path) as archive:
            return _meta(archive)
    except (FileNotFoundError, SurveyorError):
        return BLANK


def damaged(path: Path, reason: Any) -> SurveyorError:
    """Return the error of a checkpoint that cannot be read."""
    return SurveyorError(
        f"The checkpoint '{path}' is damaged and cannot be read ({reason}); "
        "delete it to restart the run from the beginning."
    )


def misfit(path: Path) -> SurveyorError:
    """Return the error of a checkpoint that has other arrays than the run."""
    return SurveyorError(
        f"The checkpoint '{path}' does not fit this run: it was written with other "
        "hyperparameters or by another version of surveyor."
    )


@contextlib.contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a damaged archive can raise almost anything
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno):
            raise
        raise damaged(path, error) from None


def _meta(archive: zipfile.ZipFile) -> dict[str, Any]:
    with archive.open(f"{META}.npy") as member:
        return {**BLANK, **json.loads(npy.read_array(member).tobytes())}


def _fits(archive: zipfile.ZipFile, name: str, leaf: Any) -> bool:
    with archive.open(f"{name}.npy") as member:
        newer = npy.read_magic(member) > (1, 0)
        header = npy.read_array_header_2_0 if newer else npy.read_array_header_1_0
        shape, _, dtype = header(member)
    return shape == leaf.shape and dtype == np.dtype(leaf.dtype)


def _read(archive: zipfile.ZipFile, name: str, leaf: Any) -> Any:
    with archive.open(f"{name}.npy") as member:
        array = npy.read_array(member)
        member.read(1)  # reaching the end verifies the checksum
    return array if isinstance(leaf, np.ndarray) else jnp.asarray(array)


def _named(tree: PyTree) -> list[tuple[str, Any]]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
