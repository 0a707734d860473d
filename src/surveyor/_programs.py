"""A cache of compiled programs on disk, which JAX reads and writes.

JAX names a program by a hash of its code, of its options and flags, and of its own version. Here
each is a file with a checksum: what does not match it is compiled again. Files are written under
another name first, so that processes need no locks, and the least recently used ones are removed.
"""

import contextlib
import hashlib
import os
import platform
import uuid
from pathlib import Path
from typing import Any

VARIABLE = "SURVEYOR_CACHE"
"""Environment variable with another folder for the cache, or `off`."""
LIMIT = 1 << 30
"""Largest size in bytes, of all versions together."""
LEAST_SECONDS = 0.01
"""Programs that compile faster are not kept."""
EVERY = 32
"""Programs that a process writes before it looks at the size again."""
SUFFIX = ".program"


def folder() -> Path | None:
    """Return the folder of the cache, the user's own unless told otherwise; None if it is off."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in ("", "0", "off") else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # there is no home
        return (Path(base) if base else Path.home() / ".cache") / "surveyor"
    return None


def version() -> str:
    """Return a name for programs that this machine can run with the installed packages."""
    import jaxlib.version

    facts = [platform.machine(), platform.processor(), *_features()]
    machine = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return f"jaxlib-{jaxlib.version.__version__}-{machine}"


def _features() -> list[str]:
    """Return what the processor can do, which JAX does not put into its hash."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
        return [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return []


class Programs:
    """The interface that JAX's compilation cache asks for: `get` and `put`."""

    def __init__(self, root: Path, limit: int = LIMIT):
        self._root, self._path, self._limit = root, root / version(), limit
        self._written = 0

    def get(self, key: str) -> bytes | None:
        """Return a program, or None if it is not there or not what was written."""
        path = self._path / (key + SUFFIX)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        checksum, program = content[:32], content[32:]
        if checksum != _checksum(key, program):
            path.unlink(missing_ok=True)  # so that it is written again
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return program

    def put(self, key: str, value: bytes) -> None:
        """Keep a program; a folder that cannot be written is left alone."""
        path = self._path / (key + SUFFIX)
        temporary = path.with_name(f"{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_bytes(_checksum(key, value) + value)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        if self._written % EVERY == 0:
            self._shrink()
        self._written += 1

    def _shrink(self) -> None:
        """Remove the programs that have not been used for longest, down to the limit."""
        files = []
        for pattern in (f"*/*{SUFFIX}", "*/*.tmp"):  # a kill may leave the latter
            for path in self._root.glob(pattern):
                with contextlib.suppress(OSError):
                    found = path.stat()
                    files.append((found.st_mtime, found.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def _checksum(key: str, program: bytes) -> bytes:
    return hashlib.sha256(key.encode() + program).digest()


def use() -> None:
    """Make JAX keep its programs here, unless the user has given it a cache."""
    import jax
    from jax._src import compilation_cache

    root, own = folder(), jax.config.jax_compilation_cache_dir  # pyright: ignore
    if root is None or own is not None or not hasattr(compilation_cache, "get_file_cache"):
        return
    programs = Programs(root)
    try:
        programs._path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if programs._path.stat().st_uid != os.getuid():  # programs of others are not run
            return
    except OSError:
        return

    def get_file_cache(path: str) -> tuple[Any, str]:
        return programs, path

    compilation_cache.get_file_cache = get_file_cache
    jax.config.update("jax_compilation_cache_dir", str(programs._path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
