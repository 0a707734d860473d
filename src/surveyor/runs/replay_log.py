"""The rows of a replay on disk: a log, to which every checkpoint appends the new ones.

checkpoint/replay/00000003.rows   a segment: rows one after another, each with all of its arrays

The checkpoint's metadata has the number and the checksum of the rows of each segment. Rows that a
kill left after those are not read, and the next checkpoint replaces them. A segment is removed once
the replay has overwritten all of its rows and the checkpoint no longer counts them.
"""

import contextlib
import errno
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.errors import SurveyorError
from surveyor.replay.ring import Ring
from surveyor.runs import checkpoint

PARTS, LEAST_ROWS = 16, 1024
"""A segment has this part of the replay's capacity, and not fewer rows than this."""
BATCH_BYTES = 1 << 22
"""Size of the rows that are copied at a time."""
FOLDER, SUFFIX = "replay", ".rows"
"""Where segments are, beside the checkpoint, and how their names end."""

Arrays = dict[str, Any]
Log = dict[str, Any]
"""The columns and the segments of a log, as JSON."""


class Segment(NamedTuple):
    """A file of the log."""

    number: int
    """Its name."""
    first: int
    """Number of its first row in the whole run."""
    rows: int
    checksum: int
    """CRC-32 of its rows."""

    @property
    def end(self) -> int:
        """Number of the row after its last."""
        return self.first + self.rows


class ReplayLog:
    """Reader and writer of the log beside one checkpoint."""

    def __init__(self, state: Path):
        self._state, self.folder = state, state.parent / FOLDER
        self._known: Log | None = None  # of the checkpoint that this process read or wrote last

    @contextlib.contextmanager
    def appended(self, ring: Ring) -> Iterator[Log]:
        """Append the new rows of a replay; yield the log, for a new checkpoint to keep.

        The checkpoint on disk must be replaced within the context, and stays valid until then. All
        rows are written again if it is not the one that this process knows, because another process
        has trained the run.
        """
        before, columns = checkpoint.read_meta(self._state)["log"], _columns(ring.arrays)
        known = before == self._known and self._holds(before, columns)
        segments = _segments(before) if known else []
        with checkpoint.full_disk_reported(self._state):
            self.folder.parent.mkdir(exist_ok=True)
            self.folder.mkdir(exist_ok=True)
            try:
                segments = self._append(ring, segments)
                log = {"columns": columns, "segments": [list(each) for each in segments]}
                yield log
            except (OSError, SurveyorError):
                self._trim(before)  # makes room for the metrics on a full disk
                raise
        self._known = log
        _sync_folder(self._state.parent)  # before rows go that the previous checkpoint needs
        self._trim(log)

    def read(self, log: Log | None, ring: Ring) -> Ring:
        """Return the rows of a log in arrays like those of `ring`, whose NumPy arrays are filled.

        Raise `SurveyorError` if the log is damaged. Change no file: another process may be training
        the run.
        """
        if log is None or log["columns"] != _columns(ring.arrays):
            raise checkpoint.misfit(self._state)
        arrays = {name: _to_fill(array) for name, array in ring.arrays.items()}
        for segment in _segments(log):
            path = self._path(segment.number)
            try:
                checksum = _read(path, segment, arrays, ring.capacity)
            except (FileNotFoundError, EOFError) as error:
                said = "is missing" if isinstance(error, OSError) else "is too short"
                raise checkpoint.damaged(self._state, f"replay/{path.name} {said}") from None
            if checksum != segment.checksum:
                raise checkpoint.damaged(self._state, f"replay/{path.name} has another checksum")
        self._known = log
        made = {name: _like(array, arrays.pop(name)) for name, array in ring.arrays.items()}
        written = max((segment.end for segment in _segments(log)), default=0)
        return Ring(made, np.array(written, np.int32), ring.capacity)

    def _append(self, ring: Ring, segments: list[Segment]) -> list[Segment]:
        """Write the rows that no segment has; return the segments that are needed."""
        written, end = int(ring.written), segments[-1].end if segments else 0
        oldest = max(0, written - ring.capacity)
        if not oldest <= end <= written:
            segments, end = [], 0
        end, size = max(end, oldest), max(LEAST_ROWS, -(-ring.capacity // PARTS))
        while end < written:
            if not segments or segments[-1].rows >= size:
                segments.append(Segment(self._next_number(), end, 0, 0))
            end = min(written, end + size - segments[-1].rows)
            segments[-1] = self._extend(segments[-1], ring, end)
        return [segment for segment in segments if segment.end > oldest]

    def _extend(self, segment: Segment, ring: Ring, end: int) -> Segment:
        """Append rows to a segment, up to row `end` of the run; flush them to disk."""
        checksum, path = segment.checksum, self._path(segment.number)
        with open(path, "r+b" if segment.rows else "xb") as file:
            file.truncate(segment.rows * _width(_columns(ring.arrays)))
            file.seek(0, os.SEEK_END)
            for rows in _batches(ring, segment.end, end):
                checksum = zlib.crc32(rows, checksum)
                file.write(rows)
            file.flush()
            os.fsync(file.fileno())
        if not segment.rows:
            _sync_folder(self.folder)
        return Segment(segment.number, segment.first, end - segment.first, checksum)

    def _holds(self, log: Log | None, columns: list[Any]) -> bool:
        """Return whether a log has these columns and all of its rows, as far as sizes tell."""
        sizes = self._sizes(log).items()
        there = all(path.exists() and path.stat().st_size >= size for path, size in sizes)
        return there and log is not None and log["columns"] == columns

    def _trim(self, log: Log | None) -> None:
        """Remove all rows that a log does not count."""
        sizes = self._sizes(log)
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):  # tried again at the next checkpoint
                if path not in sizes:
                    path.unlink()
                elif path.stat().st_size > sizes[path]:
                    os.truncate(path, sizes[path])

    def _sizes(self, log: Log | None) -> dict[Path, int]:
        """Return the bytes of a log in each of its files."""
        width = 0 if log is None else _width(log["columns"])
        return {self._path(each.number): each.rows * width for each in _segments(log)}

    def _next_number(self) -> int:
        """Return a number that no file has, also none of a killed process."""
        stems = [path.stem for path in self.folder.glob(f"*{SUFFIX}")]
        return max((int(stem) for stem in stems if stem.isdecimal()), default=-1) + 1

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{SUFFIX}"


def _segments(log: Log | None) -> list[Segment]:
    return [] if log is None else [Segment(*each) for each in log["segments"]]


def _columns(arrays: Arrays) -> list[Any]:
    """Return name, type and shape of each array in a row, as JSON."""
    each = _ordered(arrays)
    return [[name, np.dtype(array.dtype).name, list(array.shape[1:])] for name, array in each]


def _ordered(arrays: Arrays) -> list[tuple[str, Any]]:
    """Return arrays in the order in which rows have them: by name, as JAX orders them too."""
    return sorted(arrays.items())


def _batch(arrays: Arrays) -> np.ndarray:
    """Return a buffer for a batch of rows, as bytes."""
    width = _width(_columns(arrays))
    return np.empty((max(1, BATCH_BYTES // width), width), np.uint8)


def _width(columns: list[Any]) -> int:
    """Return the bytes of a row."""
    return sum(np.dtype(dtype).itemsize * math.prod(shape) for _, dtype, shape in columns)


def _places(first: int, end: int, capacity: int, most: int) -> Iterator[slice]:
    """Yield the places in a ring of rows `first` to `end` of the run, up to `most` at a time."""
    while first < end:
        at = first % capacity
        count = min(end - first, capacity - at, most)
        yield slice(at, at + count)
        first += count


def _batches(ring: Ring, first: int, end: int) -> Iterator[memoryview]:
    """Yield rows `first` to `end` of the run as bytes, a batch at a time."""
    batch = _batch(ring.arrays)
    for place in _places(first, end, ring.capacity, len(batch)):
        count, left = place.stop - place.start, 0
        for _, array in _ordered(ring.arrays):
            rows = _bytes(np.ascontiguousarray(_part(array, place, len(batch))))
            batch[:count, left : left + rows.shape[1]] = rows
            left += rows.shape[1]
        yield batch[:count].reshape(-1).data


def _read(path: Path, segment: Segment, arrays: Arrays, capacity: int) -> int:
    """Read a segment into NumPy arrays; return the checksum of its rows."""
    checksum, batch = 0, _batch(arrays)
    with open(path, "rb") as file:
        # Older rows come first, so that newer ones overwrite them here as in the replay.
        for place in _places(segment.first, segment.end, capacity, len(batch)):
            rows, left = batch[: place.stop - place.start], 0
            if file.readinto(rows.reshape(-1).data) < rows.nbytes:
                raise EOFError
            checksum = zlib.crc32(rows.reshape(-1).data, checksum)
            for _, array in _ordered(arrays):
                into = _bytes(array[place])
                into[...] = rows[:, left : left + into.shape[1]]
                left += into.shape[1]
    return checksum


def _bytes(rows: np.ndarray) -> np.ndarray:
    """Return contiguous rows as rows of bytes, without a copy."""
    return rows.reshape(len(rows), -1).view(np.uint8)


def _part(array: Any, place: slice, most: int) -> np.ndarray:
    """Return rows of an array; from an accelerator, copy no more than `most` rows for them."""
    if isinstance(array, np.ndarray) or _in_memory(array):
        return np.asarray(array)[place]
    # A slice of one length, wherever it begins, is one program; others would compile every time.
    length = min(most, len(array))
    first = min(place.start, len(array) - length)
    return np.asarray(_slice(array, first, length))[place.start - first : place.stop - first]


_slice = jax.jit(jax.lax.dynamic_slice_in_dim, static_argnums=2)


def _in_memory(array: jax.Array) -> bool:
    """Return whether NumPy can read an array of JAX where it is."""
    return all(device.platform == "cpu" for device in array.devices())


def _to_fill(array: Any) -> np.ndarray:
    """Return an array of NumPy as it is, and for others zeros of the same shape and type."""
    return array if isinstance(array, np.ndarray) else np.zeros(array.shape, array.dtype)


def _like(array: Any, filled: np.ndarray) -> Any:
    """Return a filled array as NumPy's or JAX's, whichever `array` is to be."""
    return filled if isinstance(array, np.ndarray) else jnp.asarray(filled)


def _sync_folder(path: Path) -> None:
    """Flush the names of new files to disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot
            raise
    finally:
        os.close(folder)
