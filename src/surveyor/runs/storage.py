"""Storage of runs: a local folder, or a URL that fsspec supports.

A process claims a run before training it, so that no two processes train the same run. In a folder
the claim is a file lock, which a kill releases. In remote storage it is a lease (see `remote`).
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from surveyor.errors import SurveyorError, require_folder
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder

TIMEOUT = 600.0
"""Seconds for which storage may be unreachable before a run fails."""


class Claim(NamedTuple):
    """Claim of this process to a run."""

    root: Path
    """Local folder in which to create or continue the run's folder."""
    publish: Callable[[], None]
    """Copy progress to the storage; called after every chunk."""
    place: str
    """Path or URL of the run in the storage."""


class Storage:
    """Storage of runs by name: a folder on this machine or on a shared file system."""

    def __init__(self, path: Path):
        self.path, self.place = path, str(path)

    def __str__(self) -> str:
        return self.place

    @contextlib.contextmanager
    def claimed(self, name: str) -> Iterator[Claim]:
        """Claim a run against other processes; raise `HeldError` if one of them has it."""
        with RunFolder(self.path / name).claimed():
            yield Claim(self.path, lambda: None, str(self.path / name))

    def is_held(self, name: str) -> bool:
        """Return whether a process is training this run."""
        return RunFolder(self.path / name).is_held()

    @contextlib.contextmanager
    def mirrored(self, *, beliefs: bool = False) -> Iterator[Path]:
        """Yield a folder with all runs here, or a copy: no checkpoints, snapshots if `beliefs`."""
        require_folder(self.path)
        yield self.path

    def outcome(self, config: Config) -> Record | None:
        """Return the result of the finished run of this configuration, or None."""
        return RunFolder(self.path / config.name).outcome(any_version=True)

    def fail(self, name: str, reason: str) -> None:
        """Write the reason why a run could not continue."""
        (self.path / name).mkdir(parents=True, exist_ok=True)
        RunFolder(self.path / name).fail(reason)

    def prepare(self) -> None:
        """Create the storage before the first run; raise `SurveyorError` if that fails."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"The output folder '{self.path}' cannot be written: {error.strerror}."
            raise SurveyorError(message) from None

    def write(self, name: str, content: str) -> None:
        """Write a small file next to the runs."""
        temporary = self.path / f"{name}.{uuid.uuid4().hex}.tmp"  # unique among drivers
        temporary.write_text(content, "utf-8")
        temporary.replace(self.path / name)


def at(out: str | Path) -> Storage:
    """Return the storage at a path or URL."""
    if "://" not in str(out):
        return Storage(Path(out))
    from surveyor.runs.remote import Remote

    return Remote(str(out))
