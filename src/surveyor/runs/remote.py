"""Storage of runs at a URL that fsspec supports.

A run is trained in a local folder and uploaded at its checkpoints. Meanwhile a lease, a small file
that is renewed regularly, keeps other processes from it. Clocks must agree within seconds.
"""

import contextlib
import io
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

from surveyor.errors import HeldError, SurveyorError, imported, require
from surveyor.runs import replay_log
from surveyor.runs.config import Config
from surveyor.runs.folder import BEST, CHECKPOINT, FILES, Record
from surveyor.runs.storage import TIMEOUT, Claim, Storage

LEASE_SECONDS = 60.0
"""Lease lifetime in seconds; renewed every third of it."""
SETTLE_SECONDS = 1.0
"""Seconds between writing a lease and checking that no other process overwrote it."""
ROWS = str(Path(CHECKPOINT).parent / replay_log.FOLDER)
"""Folder of the rows of a run's replay."""
PUBLISH_SECONDS, PUBLISH_SHARE = 10.0, 0.05
"""Least seconds between uploads of a run, and largest share of the time that goes into them."""


class Remote(Storage):
    """Storage on any file system that fsspec supports, such as s3://bucket/folder."""

    def __init__(self, url: str, timeout: float = TIMEOUT):
        fsspec = imported("fsspec", "fsspec", "ray", f"'{url}'")
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise SurveyorError(f"'{url}' cannot be used as storage: {error}.") from None
        if url.startswith("memory:"):
            raise SurveyorError(f"'{url}' cannot be used as storage: processes share no memory.")
        self.place, self.timeout, self._owner = url.rstrip("/"), timeout, uuid.uuid4().hex

    @contextlib.contextmanager
    def claimed(self, name: str) -> Iterator[Claim]:
        _remove_stale_folders()
        prefix = f"surveyor-{os.getpid()}-"
        with self._leased(name), tempfile.TemporaryDirectory(prefix=prefix) as scratch:
            self._retry(lambda: self._fetch_run(Path(scratch), name))
            uploads = _Uploads(self, name, Path(scratch) / name)
            try:
                yield Claim(Path(scratch), uploads.publish, f"{self.place}/{name}")
            finally:
                self._retry(uploads.upload)

    def is_held(self, name: str) -> bool:
        return self._lease(name)[1] > time.time()

    @contextlib.contextmanager
    def mirrored(self, *, beliefs: bool = False) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="surveyor-") as scratch:
            self._retry(lambda: self._mirror(Path(scratch), beliefs))
            yield Path(scratch)

    def outcome(self, config: Config) -> Record | None:
        with tempfile.TemporaryDirectory(prefix="surveyor-") as scratch:
            files = [f"{config.name}/{file}" for file in ("config.json", "result.json")]
            self._retry(lambda: self._fetch(Path(scratch), files))
            result = Storage(Path(scratch)).outcome(config)
            return None if result is None else {**result, "path": f"{self.place}/{config.name}"}

    def prepare(self) -> None:
        try:
            self._files.makedirs(self._root, exist_ok=True)
        except Exception as error:  # error types differ between file systems
            raise SurveyorError(f"The storage '{self.place}' cannot be written: {error}.") from None

    def fail(self, name: str, reason: str) -> None:
        self.write(f"{name}/failure.json", json.dumps({"reason": reason}) + "\n")

    def write(self, name: str, content: str) -> None:
        self._retry(lambda: self.upload(name, io.BytesIO(content.encode())))

    def upload(self, name: str, content: io.BufferedIOBase) -> None:
        """Write a file in one step, so that readers never see a part of it."""
        with self._committed(name) as file:
            shutil.copyfileobj(content, file, 1 << 20)

    @contextlib.contextmanager
    def _committed(self, name: str) -> Iterator[Any]:
        # Not an fsspec transaction, which would include the files that another thread writes.
        path = f"{self._root}/{name}"
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        with self._files.open(temporary, "wb") as file:
            yield file
        self._files.mv(temporary, path)

    def _mirror(self, scratch: Path, beliefs: bool) -> None:
        self._files.invalidate_cache()
        require(self._files.isdir(self._root), f"There is no folder '{self.place}'.")
        for name in self._list(self._root):
            small = [f"{name}/{file}" for file in FILES if file not in (CHECKPOINT, BEST)]
            files = [name] if name.endswith(".json") else small
            snapshots = f"{self._root}/{name}/beliefs"
            if beliefs and self._files.isdir(snapshots):
                files += [f"{name}/beliefs/{file}" for file in self._list(snapshots)]
            self._fetch(scratch, files)

    def _fetch_run(self, scratch: Path, name: str) -> None:
        """Download all files that training continues from."""
        self._files.invalidate_cache()
        rows, folder = [], f"{self._root}/{name}/{ROWS}"
        if self._files.isdir(folder):
            rows = [f for f in self._list(folder) if f.endswith(replay_log.SUFFIX)]
        files = [*FILES, *(f"{ROWS}/{file}" for file in rows)]
        self._fetch(scratch, [f"{name}/{file}" for file in files])

    def _list(self, folder: str) -> list[str]:
        found = self._files.ls(folder, detail=False)
        return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def _fetch(self, scratch: Path, names: list[str]) -> None:
        """Download those of the files that exist."""
        self._files.invalidate_cache()
        for name in names:
            path = f"{self._root}/{name}"
            if self._files.exists(path):
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(path, str(scratch / name))

    def _retry(self, action: Callable[[], None]) -> None:
        """Retry an action with growing pauses; raise `SurveyorError` after `timeout` seconds."""
        began, pause = time.monotonic(), 0.5
        while True:
            try:
                return action()
            except SurveyorError:
                raise
            except PermissionError as error:
                raise SurveyorError(f"The storage '{self.place}' denies access: {error}.") from None
            except Exception as error:  # error types differ between file systems
                if time.monotonic() - began + pause > self.timeout:
                    raise SurveyorError(
                        f"The storage '{self.place}' has not answered for {self.timeout:.0f} s "
                        f"({error}); rerun to continue from the last upload."
                    ) from None
                if pause == 2.0:  # once, and not for short outages
                    message = f"The storage '{self.place}' does not answer ({error}); retrying."
                    print(message, file=sys.stderr, flush=True)
            time.sleep(pause)
            pause = min(30.0, 2 * pause)

    @contextlib.contextmanager
    def _leased(self, name: str) -> Iterator[None]:
        self._retry(lambda: self._renew(name, first=True))
        time.sleep(SETTLE_SECONDS)
        self._retry(lambda: self.check(name))  # of two simultaneous writers, the last wins
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(LEASE_SECONDS / 3):
                with contextlib.suppress(Exception):  # retried next time, unless the lease is lost
                    self.check(name)
                    self._renew(name)

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with contextlib.suppress(Exception):
                self.check(name)
                self.remove(f"{name}/lease.json")

    def check(self, name: str) -> None:
        """Raise `HeldError` if this process does not hold the lease of the run."""
        if self._lease(name)[0] != self._owner:
            raise HeldError(f"The run '{name}' is being trained by another process.")

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def _renew(self, name: str, first: bool = False) -> None:
        owner, until = self._lease(name) if first else (None, 0.0)
        if until > time.time() and owner != self._owner:
            raise HeldError(f"The run '{name}' is being trained by another process.")
        content = {"owner": self._owner, "until": time.time() + LEASE_SECONDS}
        self.upload(f"{name}/lease.json", io.BytesIO(json.dumps(content).encode()))

    def _lease(self, name: str) -> tuple[Any, int | float]:
        """Return owner and end of a run's lease; None and 0 if there is no valid one."""
        self._files.invalidate_cache()
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError):
            with self._files.open(f"{self._root}/{name}/lease.json", "rb") as file:
                lease = json.loads(file.read())
            valid = isinstance(lease, dict) and isinstance(lease.get("until"), int | float)
            if valid and "owner" in lease:
                return lease["owner"], lease["until"]
        return None, 0.0


def _remove_stale_folders() -> None:
    """Remove the temporary folders of killed processes of this machine."""
    for path in Path(tempfile.gettempdir()).glob("surveyor-*-*"):
        number = path.name.split("-")[1]
        if number.isdigit() and not Path("/proc", number).exists():
            shutil.rmtree(path, ignore_errors=True)


class _Uploads:
    """Uploads of the changed files of a run, by modification time."""

    def __init__(self, storage: Remote, name: str, folder: Path):
        self._storage, self._name, self._folder = storage, name, folder
        self._uploaded = {file: self._stamp(file) for file in (*self._rows(), *FILES)}
        self._due = time.monotonic() + PUBLISH_SECONDS

    def publish(self) -> None:
        """Upload changed files if an upload is due; ignore unreachable storage until the next."""
        now = time.monotonic()
        if now < self._due or self._stamp(CHECKPOINT) == self._uploaded[CHECKPOINT]:
            return
        try:
            self.upload()
        except Exception as error:  # others are retried at the next upload
            if isinstance(error, SurveyorError):
                raise
        after = time.monotonic()
        self._due = after + max(PUBLISH_SECONDS, (after - now) / PUBLISH_SHARE)

    def upload(self) -> None:
        """Upload changed files, rows and metrics before the checkpoint that refers to them.

        Remove those that are gone after that, because the previous checkpoint refers to them.
        """
        self._storage.check(self._name)
        there = [*self._rows(), *FILES, *self._find("beliefs", ".npz")]
        for file in dict.fromkeys([*there, *self._uploaded]):
            stamp, name = self._stamp(file), f"{self._name}/{file}"
            if stamp is None and self._uploaded.get(file) is not None:
                self._storage.remove(name)
            elif stamp != self._uploaded.get(file):
                with open(self._folder / file, "rb") as content:
                    self._storage.upload(name, content)
            self._uploaded[file] = stamp

    def _rows(self) -> list[str]:
        return self._find(ROWS, replay_log.SUFFIX)

    def _find(self, folder: str, suffix: str) -> list[str]:
        """Return the files in a folder of the run whose names end with `suffix`."""
        found = (self._folder / folder).glob(f"*{suffix}")
        return sorted(f"{folder}/{path.name}" for path in found)

    def _stamp(self, file: str) -> int | None:
        path = self._folder / file
        return path.stat().st_mtime_ns if path.exists() else None
