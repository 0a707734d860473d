"""Bytes that checkpoints write on Atari and MinAtar, and what whole copies would have written.

    python benchmarks/checkpoints.py [--atari 2000] [--minatar 60000] [--agent su-plus]

Trains each for that many steps and counts the bytes of every checkpoint. Earlier checkpoints wrote
the replay again, on Atari its filled part and on MinAtar all of it. The table has what they would
have written at the same times, and what they would write with a full replay at times of their own:
writing took at most 5% of the time, at the speed of this machine. `--seconds` changes the least
time between two checkpoints.
"""

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import surveyor as sv
from surveyor.envs import families
from surveyor.runs import api, checkpoint
from surveyor.runs import run as policy
from surveyor.runs.folder import CHECKPOINT, RunFolder

HOUR = 3600.0
EARLIER_SHARE = 0.05
"""Largest share of the time that went into checkpoints before."""


@dataclasses.dataclass
class Count:
    """Sums over the checkpoints of a run."""

    checkpoints: int = 0
    seconds: float = 0.0
    """Time spent writing them."""
    written: int = 0
    """Bytes written."""
    state: int = 0
    """Bytes of what every checkpoint writes again: all but the rows of the replay."""
    copies: int = 0
    """Bytes that whole copies of the replay would have taken in addition to the state."""
    full: int = 0
    """Bytes of a full replay."""


class CountedFolder(RunFolder):
    """A run folder that counts the bytes of its checkpoints."""

    def __init__(self, path: str | Path, agent: Any = None):
        super().__init__(path, agent)
        self.count = Count()

    def save(self, state, ring, meta):
        began, before = time.perf_counter(), bytes_written()
        super().save(state, ring, meta)
        count = self.count
        count.seconds += time.perf_counter() - began
        count.written += bytes_written() - before
        count.checkpoints += 1
        count.state += (self.path / CHECKPOINT).stat().st_size
        leaves = jax.tree.leaves(ring.arrays)
        width = sum(x[:1].nbytes for x in leaves)
        filled = min(int(ring.written), ring.capacity)
        growing = isinstance(leaves[0], np.ndarray)  # the arrays of JAX were written whole
        count.copies += width * (filled if growing else ring.capacity)
        count.full = width * ring.capacity


def bytes_written() -> int:
    """Return the bytes that this process has handed to the system to be written."""
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])


def measured(agent: str, env: str, steps: int) -> tuple[Count, float]:
    """Train; return the counts and the seconds that training took, without compilation."""
    preset = sv.agents.preset(agent, families.find(env).preset(env))
    learner = dataclasses.replace(preset, warmup=min(preset.schedule.warmup, steps // 5))
    config = api.configure(learner, env, steps=steps)
    with tempfile.TemporaryDirectory() as out:
        run = api.begin(config, Path(out))
        run.folder = folder = CountedFolder(Path(out) / config.name)
        began = time.perf_counter()
        for n, _ in enumerate(run.advance()):
            if n == 0:  # all but the updates has been compiled
                folder.count, began = Count(), time.perf_counter()
        return folder.count, time.perf_counter() - began


def write_speed(size: int = 1 << 28) -> float:
    """Return the bytes a second of a checkpoint that is as large as this."""
    content = {"x": np.random.default_rng(0).integers(0, 256, size, np.uint8)}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        checkpoint.save(Path(folder) / "state.npz", content, {})
        return size / (time.perf_counter() - began)


def at_own_times(size: float, speed: float) -> float:
    """Return the bytes an hour of checkpoints of this size, as often as they may be written."""
    took = size / speed
    pause = max(policy.CHECKPOINT_SECONDS, took / EARLIER_SHARE)
    return size * HOUR / (took + pause)


def row(env: str, count: Count, seconds: float, speed: float) -> list[str]:
    """Return what the table says of an environment."""
    n, hourly = count.checkpoints, HOUR / seconds
    now, copies = count.written * hourly, (count.state + count.copies) * hourly
    full = at_own_times(count.state / n + count.full, speed)
    sizes = [count.state / n, (count.written - count.state) / n, count.full]
    return [
        f"`{env}`",
        f"{n} in {seconds:.0f} s",
        *(f"{size / 1e6:,.1f} MB" for size in sizes),
        f"{now / 1e9:.1f} GB",
        *(f"{size / 1e9:.1f} GB ({size / now:.1f}×)" for size in (copies, full)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--atari", type=int, default=2_000, metavar="STEPS")
    parser.add_argument("--minatar", type=int, default=60_000, metavar="STEPS")
    parser.add_argument("--agent", default="su-plus")
    parser.add_argument("--seconds", type=float, default=policy.CHECKPOINT_SECONDS)
    options = parser.parse_args()
    policy.CHECKPOINT_SECONDS = options.seconds
    columns = [
        "environment", "checkpoints", "state", "new rows", "full replay",
        "written an hour", "whole copies at the same times", "whole copies of a full replay",
    ]  # fmt: skip
    speed = write_speed()
    print(f"Writes {speed / 1e6:.0f} MB/s; {options.seconds:g} s between checkpoints or more.\n")
    print("| " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * (len(columns) - 1))
    for env, steps in (("ALE/Breakout", options.atari), ("MinAtar/Breakout", options.minatar)):
        if steps:
            found = row(env, *measured(options.agent, env, steps), speed)
            print("| " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
