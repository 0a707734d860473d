"""Where runs are kept: a folder of this machine, or any storage that fsspec knows by a URL.

A run is claimed before it is trained, so that no two processes train it. In a folder that is a lock
on the run's own folder, which a kill lets go of. In remote storage it is a lease, a small file that
is renewed while training goes on; the run is trained in a folder of this machine and copied out at
its checkpoints.
"""

import abc
import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from surveyor.errors import SurveyorError
from surveyor.runs import api
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder

TIMEOUT = 600.0
"""How many seconds storage may be gone before a run gives up."""


class Claim(NamedTuple):
    """A run that is ours: where to train it, what to call when some of it is done, and where it is
    for everyone else."""

    root: Path
    publish: Callable[[], None]
    place: str


class Storage(abc.ABC):
    """Runs by their names."""

    @abc.abstractmethod
    def claimed(self, name: str) -> contextlib.AbstractContextManager[Claim]:
        """Keep everyone else from this run; raises `HeldError` where someone else has it."""

    @abc.abstractmethod
    def is_held(self, name: str) -> bool:
        """Whether someone is training this run now."""

    @abc.abstractmethod
    def mirrored(self, *, beliefs: bool = False) -> contextlib.AbstractContextManager[Path]:
        """A folder of this machine with everything but the checkpoints, for reading; `beliefs` only
        if they are asked for."""

    @abc.abstractmethod
    def outcome(self, config: Config) -> Record | None:
        """The result of a run of this configuration that has ended, if there is one."""

    @abc.abstractmethod
    def fail(self, name: str, reason: str) -> None:
        """Write down why a run could not go on."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make it, before the first run; an error where that cannot be done."""

    @abc.abstractmethod
    def write(self, name: str, content: str) -> None:
        """Write a small file beside the runs."""


def at(out: str | Path) -> Storage:
    """The storage that a path or a URL names."""
    if "://" not in str(out):
        return Local(Path(out))
    from surveyor.runs.remote import Remote

    return Remote(str(out))


class Local(Storage):
    """A folder, perhaps one that several machines share."""

    def __str__(self) -> str:
        return str(self.path)

    def __init__(self, path: Path):
        self.path = path

    @contextlib.contextmanager
    def claimed(self, name: str) -> Iterator[Claim]:
        with RunFolder(self.path / name).claimed():
            yield Claim(self.path, lambda: None, str(self.path / name))

    def is_held(self, name: str) -> bool:
        return RunFolder(self.path / name).is_held()

    @contextlib.contextmanager
    def mirrored(self, *, beliefs: bool = False) -> Iterator[Path]:
        if not self.path.is_dir():
            raise SurveyorError(f"There is no folder '{self.path}'.")
        yield self.path

    def outcome(self, config: Config) -> Record | None:
        return api.outcome(config, self.path, any_version=True)

    def fail(self, name: str, reason: str) -> None:
        (self.path / name).mkdir(parents=True, exist_ok=True)
        RunFolder(self.path / name).fail(reason)

    def prepare(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SurveyorError(
                f"The output folder '{self.path}' cannot be written: {error.strerror}."
            ) from None

    def write(self, name: str, content: str) -> None:
        temporary = self.path / f"{name}.{uuid.uuid4().hex}.tmp"  # there may be another driver
        temporary.write_text(content, "utf-8")
        temporary.replace(self.path / name)
