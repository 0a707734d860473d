"""Files of a run on disk.

<env>-<agent>-s<seed>-<hash>/
  config.json            configuration and versions, sufficient to repeat the run
  metrics.jsonl          one record per test interval, append-only
  checkpoint/state.npz   training state, replaced atomically
  checkpoint/replay/     rows of the replay, appended before the state that counts them
  result.json            result, once the run has finished
  failure.json           reason, if the run could not continue
  stopped.json           reason, if a callback stopped the run
  best/state.npz         the agent's state with the best evaluation, if requested
  tests.json             greedy evaluations during training, if requested
  beliefs/               snapshots of the agent's beliefs, if requested
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import PyTree

from surveyor.agents.base import Agent
from surveyor.errors import HeldError, SurveyorError, require_run
from surveyor.replay.ring import Ring
from surveyor.runs import checkpoint, json_files
from surveyor.runs.config import Config, versions
from surveyor.runs.json_files import Record
from surveyor.runs.replay_log import ReplayLog

CHECKPOINT, BEST = "checkpoint/state.npz", "best/state.npz"
FILES = ("config.json", "metrics.jsonl", CHECKPOINT, BEST, "tests.json", "result.json")
FILES += ("failure.json", "stopped.json")
"""Files of a run without its snapshots, each after those that it refers to."""
TAIL_BYTES = 32_768
"""Size of the end of metrics.jsonl that `newest_metrics` reads."""

Arrays = dict[str, np.ndarray]
Restored = tuple[PyTree, Ring | None, Record]

_claimed: set[Path] = set()  # by this process


class RunFolder:
    """Reader and writer of one run folder."""

    def __init__(self, path: str | Path, agent: Agent | None = None):
        self.path, self._agent = Path(path), agent
        files = [self.path / file for file in FILES]
        self._config, self._metrics, self._checkpoint, self._best = files[:4]
        self._evaluations, self._result, self._failure, self._stopped = files[4:]
        self._snapshots, self._log = self.path / "beliefs", ReplayLog(self._checkpoint)

    @classmethod
    def create(cls, path: Path, config: Config) -> "RunFolder":
        """Create the folder of a new run; remove the files of an earlier run in the same place."""
        folder, claimed = cls(path), path.resolve() in _claimed
        try:
            path.mkdir(parents=not claimed, exist_ok=True)
            for file in reversed(FILES[1:]):
                (path / file).unlink(missing_ok=True)
            for files in (folder._snapshots, folder._log.folder):
                shutil.rmtree(files, ignore_errors=True)
            json_files.write(folder._config, config.to_json())
        except OSError as error:
            if claimed:  # it existed a moment ago, so storage may return
                raise
            message = f"The output folder '{path}' cannot be written: {error.strerror}."
            raise SurveyorError(message) from None
        return folder

    @classmethod
    def open(cls, path: str | Path, agent: Agent | None = None) -> "RunFolder":
        """Open an existing run folder; raise `SurveyorError` if `path` is not one.

        `agent` is the run's agent, if it has a module of the user's own.
        """
        folder = cls(path, agent)
        require_run(path)
        folder.config()
        return folder

    def config(self, *, any_agent: bool = False) -> Config:
        """Return the configuration; raise `SurveyorError` if it cannot be read.

        With `any_agent`, an agent that is not known here is replaced by a stand-in that cannot act.
        """
        try:
            content = json.loads(self._config.read_text("utf-8"))
            return Config.from_json(content, self._agent, any_agent=any_agent)
        except (*json_files.DAMAGED, KeyError, TypeError, AttributeError) as error:
            message = f"'{self._config}' is not the configuration of a surveyor run ({error})."
            raise SurveyorError(message) from None

    def config_content(self) -> Record | None:
        """Return config.json as data, or None if it is missing or damaged; it needs no agent."""
        return json_files.read(self._config)

    def made_by_this_version(self) -> bool:
        """Return whether config.json was written with the installed versions."""
        return (json_files.read(self._config) or {}).get("versions") == versions()

    def outcome(self, *, any_version: bool = False) -> Record | None:
        """Return the result of an ended run, made with the installed versions or any, else None."""
        found = json_files.read(self._config)
        known = found is not None if any_version else self.made_by_this_version()
        return self.result() if known else None

    def result(self) -> Record | None:
        """Return the result, or None if the run has not finished."""
        found = json_files.read(self._result)
        return None if found is None else {**found, "path": str(self.path)}

    def metrics(self) -> list[Record]:
        """Return all metrics records, without a last line that a kill left incomplete."""
        return self.read_metrics()[0]

    def read_metrics(self, *, skip: bool = False) -> tuple[list[Record], int]:
        """Return the records before the first damaged line, or `skip` it, and the line count."""
        lines = self._lines()
        return json_files.parsed(lines, skip), len(lines)

    def newest_metrics(self) -> Iterator[Record]:
        """Yield metrics records from the newest backwards: all, or those in the last 32 kB."""
        if self._metrics.exists():
            with open(self._metrics, "rb") as file:
                start = max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES)
                file.seek(start)
                lines = file.read().splitlines()
            for line in reversed(lines[1:] if start else lines):
                yield from json_files.parsed([line], skip=True)

    def append(self, records: list[Record]) -> None:
        """Append metrics records and flush them to disk."""
        if records:
            with open(self._metrics, "ab") as file:
                file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))
                file.flush()
                os.fsync(file.fileno())

    def save(self, state: PyTree, ring: Ring, meta: Record) -> None:
        """Write a checkpoint; `meta` has the digest of the `run` and the number of `records`."""
        with self._log.appended(ring) as log:
            checkpoint.save(self._checkpoint, state, {**meta, "log": log})

    def restore(self, state: PyTree, ring: Ring | None) -> Restored | None:
        """Return state, ring and metadata of the last checkpoint, or None if there is none.

        They are like `state` and `ring`, whose NumPy arrays are filled. Without a ring, no rows are
        read.
        """
        while self._checkpoint.exists():
            stamp = self._checkpoint.stat().st_mtime_ns
            try:
                return self._restored(state, ring)
            except SurveyorError:  # was it replaced, and were rows removed that it needed?
                if stamp == self._checkpoint.stat().st_mtime_ns:
                    raise
        return None

    def _restored(self, state: PyTree, ring: Ring | None) -> Restored:
        state, meta = checkpoint.load(self._checkpoint, state)
        if meta["run"] != self.config().digest():
            raise SurveyorError(
                f"The checkpoint in '{self.path}' was written with other hyperparameters than "
                "those in its config.json; the hyperparameters of a run cannot change."
            )
        if (written := len(self._lines())) < meta["records"]:
            raise SurveyorError(
                f"'{self._metrics}' has {written} records, fewer than the {meta['records']} of the "
                "checkpoint; it was changed or damaged."
            )
        # Nothing is changed: another process may be training the run.
        return state, None if ring is None else self._log.read(meta["log"], ring), meta

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the folder against other processes, even before it holds a run; allow `held`."""
        self.path.mkdir(exist_ok=True)  # not its parents: a missing mount must not be replaced
        with self._locked():
            _claimed.add(self.path.resolve())
            try:
                yield
            finally:
                _claimed.discard(self.path.resolve())
                with contextlib.suppress(OSError):
                    if os.listdir(self.path) == [".lock"]:  # the run was refused
                        shutil.rmtree(self.path)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the run against training by other processes; a kill releases the lock."""
        with contextlib.nullcontext() if self.path.resolve() in _claimed else self._locked():
            self._failure.unlink(missing_ok=True)
            self._stopped.unlink(missing_ok=True)
            yield

    def is_held(self) -> bool:
        """Return whether a process is training this run."""
        try:
            with self._locked(retries=0, flags=os.O_RDWR):
                return False
        except (HeldError, OSError) as error:
            return isinstance(error, HeldError)

    @contextlib.contextmanager
    def _locked(self, retries: int = 5, flags: int = os.O_RDWR | os.O_CREAT) -> Iterator[None]:
        # Retry, because `is_held` takes the lock for a moment.
        # Open for writing, because NFS supports exclusive locks only on such files.
        with open(os.open(self.path / ".lock", flags, 0o666), "rb") as lock:
            for left in range(retries, -1, -1):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not left:
                        message = f"The run in '{self.path}' is being trained by another process."
                        raise HeldError(message) from None
                time.sleep(0.02)
            yield

    def truncate_metrics(self, count: int) -> None:
        """Keep the first `count` metrics records; training repeats those after a checkpoint."""
        lines = self._lines()[:count]
        checkpoint.write_atomically(self._metrics, b"".join(line + b"\n" for line in lines))

    def finish(self, result: Record) -> None:
        """Write the result, which marks the run as finished; omit the path, which may change."""
        content = {name: value for name, value in result.items() if name != "path"}
        json_files.write(self._result, content)
        self._stopped.unlink(missing_ok=True)

    def fail(self, reason: str) -> None:
        """Write the reason why the run could not continue."""
        json_files.write(self._failure, {"reason": reason})

    def failure(self) -> str | None:
        """Return the reason why the run could not continue, or None."""
        return json_files.reason(self._failure)

    def stop(self, reason: str) -> None:
        """Write the reason why a callback stopped the run."""
        json_files.write(self._stopped, {"reason": reason})

    def stop_reason(self) -> str | None:
        """Return the reason why a callback stopped the run, or None."""
        return json_files.reason(self._stopped)

    def write_best(self, state: PyTree, meta: Record) -> None:
        """Write the agent's best state; `meta` has the digest of the `run`, and `mean_return`."""
        checkpoint.save(self._best, state, meta)

    def read_best(self, like: PyTree) -> tuple[PyTree, Record] | None:
        """Return the agent's best state and its metadata, or None if there is none."""
        return checkpoint.load(self._best, like) if self._best.exists() else None

    def evaluations(self) -> list[Record]:
        """Return the records of greedy evaluations during training."""
        content = (json_files.read(self._evaluations) or {}).get("tests")
        records = content if isinstance(content, list) else []
        return [r for r in records if isinstance(r, dict) and r.keys() >= {"number", "of", "at"}]

    def write_evaluations(self, records: list[Record]) -> None:
        """Replace the records of greedy evaluations."""
        json_files.write(self._evaluations, {"tests": records})

    @property
    def snapshots_enabled(self) -> bool:
        """Return whether belief snapshots are recorded during training."""
        return self._snapshots.is_dir()

    def enable_snapshots(self) -> None:
        """Record belief snapshots from now on, if the folder is writable."""
        with contextlib.suppress(OSError):
            self._snapshots.mkdir(exist_ok=True)

    def snapshot_times(self) -> list[int]:
        """Return the times of the belief snapshots, in episodes or steps."""
        names = [path.stem for path in self._snapshots.glob("*.npz")]
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def read_snapshot(self, at: int | str) -> Arrays:
        """Return the arrays of a snapshot; NumPy or the system raise an error if it is damaged."""
        with np.load(self._snapshots / f"{at:0>10}.npz", allow_pickle=False) as archive:
            return dict(archive)

    def write_snapshot(self, at: int | str, arrays: Arrays) -> None:
        """Write the arrays of a snapshot, identified by its time or by a name."""
        with checkpoint.written_atomically(self._snapshots / f"{at:0>10}.npz") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    def _lines(self) -> list[bytes]:
        return self._metrics.read_bytes().splitlines() if self._metrics.exists() else []
