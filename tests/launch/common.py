"""Code that tests of sweeps in other processes share."""

import time
from pathlib import Path


def wait_for(condition, seconds=150):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def metrics(out):
    """By the name of the run."""
    return {path.parent.name: path.read_bytes() for path in Path(out).glob("*/metrics.jsonl")}


def processes():
    """The number, the parent and the command of every process."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        yield int(path.name), int(parent), command
