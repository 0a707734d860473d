"""A run on disk.

<env>-<agent>-s<seed>-<hash>/
  config.json            all that is needed to repeat the run, with versions
  metrics.jsonl          one record a test interval; only ever appended to
  checkpoint/state.npz   everything that changes, replaced in one step
  result.json            only when the run has ended
  failure.json           only when it could not go on: why
  tests.json             only where greedy episodes were asked for during training
  beliefs/               only where asked for: what the agent believed, now and then
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import PyTree

from surveyor.errors import HeldError, SurveyorError
from surveyor.runs import checkpoint
from surveyor.runs.config import Config, versions

DAMAGED = FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError
"""What reading JSON raises where there is none; not where storage is out of reach for a while."""

Record = dict[str, Any]
Arrays = dict[str, np.ndarray]

_claimed: set[Path] = set()
"""Folders that this process has claimed as a whole."""


class Restored(NamedTuple):
    """What a checkpoint holds."""

    arrays: PyTree
    records: int
    seconds: float
    more: Record


class RunFolder:
    """Reads and writes one run folder."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._config = self.path / "config.json"
        self._metrics = self.path / "metrics.jsonl"
        self._checkpoint = self.path / "checkpoint" / "state.npz"
        self._result = self.path / "result.json"
        self._failure = self.path / "failure.json"
        self._tests = self.path / "tests.json"
        self._beliefs = self.path / "beliefs"

    @classmethod
    def create(cls, path: Path, config: Config) -> "RunFolder":
        """A fresh folder for this run; what an earlier run left there is removed."""
        folder = cls(path)
        claimed = path.resolve() in _claimed
        try:
            path.mkdir(parents=not claimed, exist_ok=True)
            old = (folder._result, folder._failure, folder._tests, folder._checkpoint)
            for file in (*old, folder._metrics):
                file.unlink(missing_ok=True)
            shutil.rmtree(folder._beliefs, ignore_errors=True)
            checkpoint.write_atomically(folder._config, _pretty(config.to_json()))
        except OSError as error:
            if claimed:  # it was there a moment ago, and may be again
                raise
            raise SurveyorError(
                f"The output folder '{path}' cannot be written: {error.strerror}."
            ) from None
        return folder

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """An existing run folder; an error if it is none."""
        folder = cls(path)
        if not folder.path.exists():
            raise SurveyorError(f"There is no run folder '{path}'.")
        if not folder._config.is_file():
            raise SurveyorError(f"'{path}' is not a run folder: it has no config.json.")
        folder.config()
        return folder

    def config(self) -> Config:
        """What the run was asked to do."""
        try:
            return Config.from_json(json.loads(self._config.read_text("utf-8")))
        except (*DAMAGED, KeyError, TypeError, AttributeError) as error:
            raise SurveyorError(
                f"'{self._config}' is not the configuration of a surveyor run ({error})."
            ) from None

    def has_config(self) -> bool:
        """Whether there is one, of whatever version."""
        return _read(self._config) is not None

    def made_by_this_version(self) -> bool:
        """Whether it was written with the versions that are installed now."""
        content = _read(self._config)
        return content is not None and content.get("versions") == versions()

    def result(self) -> Record | None:
        """The outcome, or None while there is none."""
        found = _read(self._result)
        return None if found is None else {**found, "path": str(self.path)}

    def metrics(self) -> list[Record]:
        """All records; a last line that a kill left torn is ignored."""
        return self.read_metrics()[0]

    def read_metrics(self, *, skip: bool = False) -> tuple[list[Record], int]:
        """The records, up to the first line that is damaged or without all of those; and how many
        lines there are."""
        records, lines = [], self._lines()
        for line in lines:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if isinstance(record, dict):
                records.append(record)
            elif not skip:
                break
        return records, len(lines)

    def append(self, records: list[Record]) -> None:
        """Add records at the end, and see them onto the disk."""
        if not records:
            return
        with open(self._metrics, "ab") as file:
            file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
            file.flush()
            os.fsync(file.fileno())

    def save(
        self, arrays: PyTree, records: int, seconds: float, more: Record | None = None
    ) -> None:
        """Write a checkpoint that goes with the first `records` lines of the metrics."""
        meta = {"run": self.config().digest(), "records": records, "seconds": seconds}
        checkpoint.save(self._checkpoint, arrays, {**meta, "more": more or {}})

    def restore(self, like: PyTree, *, part: bool = False) -> Restored | None:
        """The last checkpoint; None if there is none. `part` as in `checkpoint.load`.

        Reads only: a run may be looked at while it is being trained.
        """
        if not self._checkpoint.exists():
            return None
        arrays, meta = checkpoint.load(self._checkpoint, like, part=part)
        if meta.get("run") != self.config().digest():
            raise SurveyorError(
                f"The checkpoint in '{self.path}' was written with other hyperparameters than its "
                "config.json now has; a run keeps those that it was started with."
            )
        written = len(self._lines())
        if written < meta["records"]:
            raise SurveyorError(
                f"'{self._metrics}' has {written} records where the checkpoint knows of "
                f"{meta['records']}; it was changed or damaged."
            )
        return Restored(arrays, meta["records"], meta["seconds"], meta["more"])

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep every other process from this folder, from before there is a run in it until it has
        ended; whatever this process does there meanwhile is within the claim."""
        self.path.mkdir(exist_ok=True)  # not its parent: storage that is gone is not to be replaced
        with self._locked():
            _claimed.add(self.path.resolve())
            try:
                yield
            finally:
                _claimed.discard(self.path.resolve())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep every other process from training this run; a kill lets go of it as well."""
        with contextlib.nullcontext() if self.path.resolve() in _claimed else self._locked():
            self._failure.unlink(missing_ok=True)
            yield

    def is_held(self) -> bool:
        """Whether some process is training this run now."""
        if not (self.path / ".lock").exists():
            return False
        try:
            with self._locked(patience=0):
                return False
        except HeldError:
            return True
        except OSError:
            return False

    @contextlib.contextmanager
    def _locked(self, patience: int = 5) -> Iterator[None]:
        # Whoever only asks has the lock for a moment: so try a few times.
        # A file opened for writing: NFS passes on the locks of such files alone.
        lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if patience == 0:
                        raise HeldError(
                            f"The run in '{self.path}' is being trained by another process."
                        ) from None
                patience -= 1
                time.sleep(0.02)
            yield
        finally:
            os.close(lock)

    def truncate_metrics(self, count: int) -> None:
        """Before training goes on: cut off the records written after the checkpoint; they will
        come again."""
        lines = self._lines()[:count]
        checkpoint.write_atomically(self._metrics, b"".join(line + b"\n" for line in lines))

    def finish(self, result: Record) -> None:
        """Write the outcome; from now on the run counts as ended. (A folder may be moved: where
        it is is not written.)"""
        content = {name: value for name, value in result.items() if name != "path"}
        checkpoint.write_atomically(self._result, _pretty(content))

    def fail(self, reason: str) -> None:
        """Write why the run could not go on; it may yet, later."""
        checkpoint.write_atomically(self._failure, _pretty({"reason": reason}))

    def failure(self) -> str | None:
        """Why it could not go on, if so."""
        if not self._failure.exists():
            return None
        reason = (_read(self._failure) or {}).get("reason")
        return reason if isinstance(reason, str) else "failure.json is damaged."

    def evaluations(self) -> list[Record]:
        """What greedy episodes during training came to."""
        found = (_read(self._tests) or {}).get("tests")
        known = found if isinstance(found, list) else []
        return [r for r in known if isinstance(r, dict) and r.keys() >= {"number", "of", "at"}]

    def write_evaluations(self, tests: list[Record]) -> None:
        """Write all of them."""
        checkpoint.write_atomically(self._tests, _pretty({"tests": tests}))

    @property
    def snapshots_enabled(self) -> bool:
        """Whether what the agent believes is to be written down now and then."""
        return self._beliefs.is_dir()

    def enable_snapshots(self) -> None:
        """From now on, if that can be."""
        with contextlib.suppress(OSError):
            self._beliefs.mkdir(exist_ok=True)

    def snapshot_times(self) -> list[int]:
        """When, in episodes or steps."""
        names = [path.stem for path in self._beliefs.glob("*.npz")]
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def read_snapshot(self, at: int | str) -> Arrays:
        """What was written then; an error of NumPy's or of the system's where it is damaged."""
        with np.load(self._belief(at), allow_pickle=False) as archive:
            return dict(archive)

    def write_snapshot(self, at: int | str, arrays: Arrays) -> None:
        """Write it, by a number or by a name."""
        with checkpoint.written_atomically(self._belief(at)) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    def _belief(self, at: int | str) -> Path:
        return self._beliefs / (f"{at:010d}.npz" if isinstance(at, int) else f"{at}.npz")

    def _lines(self) -> list[bytes]:
        return self._metrics.read_bytes().splitlines() if self._metrics.exists() else []


def _read(path: Path) -> Record | None:
    """A JSON file's content; None where it is missing or damaged."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except DAMAGED:
        return None
    return content if isinstance(content, dict) else None


def _pretty(content: Record) -> bytes:
    return json.dumps(content, indent=2).encode() + b"\n"
