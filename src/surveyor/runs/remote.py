"""Runs in storage that fsspec knows by a URL.

A run is trained in a folder of this machine and copied out at its checkpoints. Meanwhile a lease, a
small file that is renewed, keeps everyone else from it; the clocks of machines that share storage
are taken to agree within seconds.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from surveyor.errors import HeldError, SurveyorError, missing
from surveyor.runs import api
from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.runs.storage import TIMEOUT, Claim, Storage

LEASE_SECONDS = 60.0
"""How long a lease is good for after it was last renewed, three times in that time."""
SETTLE_SECONDS = 1.0
"""How long after writing a lease it is looked at, whether another has written one as well."""
PUBLISH_SECONDS = 10.0
"""How often a run is copied out at the most, or less often where copying takes long:"""
PUBLISH_SHARE = 0.05
"""no more than this share of the time."""
SMALL = ("config.json", "metrics.jsonl", "tests.json", "result.json", "failure.json")
CHECKPOINT = "checkpoint/state.npz"


class Remote(Storage):
    """Anything that fsspec has a file system for, such as s3://bucket/folder."""

    def __str__(self) -> str:
        return self.url

    def __init__(self, url: str, patience: float = TIMEOUT):
        try:
            import fsspec
        except ImportError:
            raise missing("fsspec", "ray", f"'{url}'") from None
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise SurveyorError(f"'{url}' is no storage that can be used here: {error}.") from None
        if url.startswith("memory:"):
            raise SurveyorError(
                f"'{url}' is no storage for runs: every process has a memory of its own."
            )
        self.url, self.patience = url.rstrip("/"), patience
        self._owner = uuid.uuid4().hex

    @contextlib.contextmanager
    def claimed(self, name: str) -> Iterator[Claim]:
        _tidy()
        prefix = f"surveyor-{os.getpid()}-"
        with self._leased(name), tempfile.TemporaryDirectory(prefix=prefix) as scratch:
            folder = Path(scratch) / name
            self._patiently(lambda: self._fetch(name, folder, (*SMALL, CHECKPOINT)))
            copies = _Copies(self, name, folder)
            try:
                yield Claim(Path(scratch), copies.publish, f"{self.url}/{name}")
            finally:
                self._patiently(copies.copy)

    def is_held(self, name: str) -> bool:
        lease = self._lease(name)
        return lease is not None and lease["until"] > time.time()

    @contextlib.contextmanager
    def mirrored(self, *, beliefs: bool = False) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="surveyor-") as scratch:
            self._patiently(lambda: self._look(Path(scratch), beliefs))
            yield Path(scratch)

    def outcome(self, config: Config) -> Record | None:
        with tempfile.TemporaryDirectory(prefix="surveyor-") as scratch:
            names = ("config.json", "result.json")
            self._patiently(lambda: self._fetch(config.name, Path(scratch) / config.name, names))
            found = api.outcome(config, Path(scratch), any_version=True)
            return None if found is None else {**found, "path": f"{self.url}/{config.name}"}

    def prepare(self) -> None:
        try:
            self._files.makedirs(self._root, exist_ok=True)
        except Exception as error:  # every file system has its own
            raise SurveyorError(f"The storage '{self.url}' cannot be written: {error}.") from None

    def fail(self, name: str, reason: str) -> None:
        self.write(f"{name}/failure.json", json.dumps({"reason": reason}) + "\n")

    def write(self, name: str, content: str) -> None:
        self._patiently(lambda: self._write(name, content.encode()))

    def upload(self, source: Path, name: str) -> None:
        """Copy a file out, in one step for whoever reads it."""
        with self._committed(name) as file, open(source, "rb") as content:
            shutil.copyfileobj(content, file, 1 << 20)

    def _write(self, name: str, content: bytes) -> None:
        with self._committed(name) as file:
            file.write(content)

    @contextlib.contextmanager
    def _committed(self, name: str) -> Iterator[Any]:
        # fsspec's transactions belong to a file system, which two threads use here.
        path = f"{self._root}/{name}"
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        with self._files.open(temporary, "wb") as file:
            yield file
        self._files.mv(temporary, path)

    def _look(self, scratch: Path, beliefs: bool) -> None:
        self._files.invalidate_cache()
        if not self._files.isdir(self._root):
            raise SurveyorError(f"There is no folder '{self.url}'.")
        for entry in self._files.ls(self._root, detail=False):
            name = str(entry).rstrip("/").rpartition("/")[2]
            if name.endswith(".json"):
                self._files.get_file(f"{self._root}/{name}", str(scratch / name))
            else:
                self._fetch(name, scratch / name, SMALL)
                seen = f"{self._root}/{name}/beliefs"
                if beliefs and self._files.isdir(seen):
                    files = [str(path).rpartition("/")[2] for path in self._files.ls(seen, False)]
                    self._fetch(name, scratch / name, tuple(f"beliefs/{file}" for file in files))

    def _fetch(self, name: str, folder: Path, files: tuple[str, ...]) -> None:
        self._files.invalidate_cache()
        for file in files:
            path = f"{self._root}/{name}/{file}"
            if self._files.exists(path):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(path, str(folder / file))

    def _patiently(self, action: Callable[[], None]) -> None:
        """Again and again, less and less often, until it works or patience ends."""
        began, pause, said = time.monotonic(), 0.5, False
        while True:
            try:
                return action()
            except SurveyorError:
                raise
            except PermissionError as error:
                raise SurveyorError(f"The storage '{self.url}' refuses: {error}.") from None
            except Exception as error:  # every file system has its own
                if time.monotonic() - began + pause > self.patience:
                    raise SurveyorError(
                        f"The storage '{self.url}' has not answered for {self.patience:.0f} s "
                        f"({error}); what was done since the last copy will be done again."
                    ) from None
                if not said and pause > 1:  # not of every hiccup
                    said = True
                    print(
                        f"The storage '{self.url}' does not answer ({error}); waiting for it, "
                        f"{self.patience:.0f} s at the most.",
                        file=sys.stderr,
                        flush=True,
                    )
            time.sleep(pause)
            pause = min(30.0, 2 * pause)

    @contextlib.contextmanager
    def _leased(self, name: str) -> Iterator[None]:
        self._patiently(lambda: self._renew(name, first=True))
        time.sleep(SETTLE_SECONDS)
        self._patiently(lambda: self.check(name))  # of two who wrote at once the later has it
        ended = threading.Event()

        def keep() -> None:
            while not ended.wait(LEASE_SECONDS / 3):
                with contextlib.suppress(Exception):  # the next time; or it is another's by now
                    self.check(name)
                    self._renew(name)

        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()
            with contextlib.suppress(Exception):
                self.check(name)
                self.remove(f"{name}/lease.json")

    def check(self, name: str) -> None:
        """Raises `HeldError` where the run is no longer ours."""
        lease = self._lease(name)
        if lease is None or lease["owner"] != self._owner:
            raise HeldError(f"The run '{name}' is being trained by another process.")

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def _renew(self, name: str, first: bool = False) -> None:
        if first:
            lease = self._lease(name)
            if lease and lease["until"] > time.time() and lease["owner"] != self._owner:
                raise HeldError(f"The run '{name}' is being trained by another process.")
        content = {"owner": self._owner, "until": time.time() + LEASE_SECONDS}
        self._write(f"{name}/lease.json", json.dumps(content).encode())

    def _lease(self, name: str) -> Record | None:
        self._files.invalidate_cache()
        try:
            with self._files.open(f"{self._root}/{name}/lease.json", "rb") as file:
                lease = json.loads(file.read())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        whole = isinstance(lease, dict) and isinstance(lease.get("until"), int | float)
        return lease if whole and "owner" in lease else None


def _tidy() -> None:
    """Remove what killed processes of this machine have left behind."""
    for path in Path(tempfile.gettempdir()).glob("surveyor-*-*"):
        number = path.name.split("-")[1]
        if number.isdigit() and not Path("/proc", number).exists():
            shutil.rmtree(path, ignore_errors=True)


class _Copies:
    """Which files of a run are in remote storage as they are here."""

    def __init__(self, storage: Remote, name: str, folder: Path):
        self._storage, self._name, self._folder = storage, name, folder
        self._copied = {file: self._stamp(file) for file in (*SMALL, CHECKPOINT)}
        self._due = time.monotonic() + PUBLISH_SECONDS

    def publish(self) -> None:
        """Copy out what has changed, if it is time; where storage is gone, the next time."""
        now = time.monotonic()
        if now < self._due or self._stamp(CHECKPOINT) == self._copied[CHECKPOINT]:
            return
        try:
            self.copy()
        except SurveyorError:
            raise
        except Exception:  # the next time
            pass
        took = time.monotonic() - now
        self._due = time.monotonic() + max(PUBLISH_SECONDS, took / PUBLISH_SHARE)

    def copy(self) -> None:
        """Copy out what has changed: the metrics before the checkpoint that counts on them."""
        self._storage.check(self._name)
        for file in (*SMALL[:2], CHECKPOINT, *SMALL[2:]):
            stamp = self._stamp(file)
            if stamp == self._copied[file]:
                continue
            if stamp is None:
                self._storage.remove(f"{self._name}/{file}")
            else:
                self._storage.upload(self._folder / file, f"{self._name}/{file}")
            self._copied[file] = stamp
        for path in sorted((self._folder / "beliefs").glob("*.npz")):
            file = f"beliefs/{path.name}"
            if (stamp := self._stamp(file)) != self._copied.get(file):
                self._storage.upload(path, f"{self._name}/{file}")
                self._copied[file] = stamp

    def _stamp(self, file: str) -> int | None:
        path = self._folder / file
        return path.stat().st_mtime_ns if path.exists() else None
