"""What a sweep costs beside the runs themselves: 500 tiny runs on all cores.

    python benchmarks/sweep.py [--runs 500]

The runs themselves are trained by plain loops over seeds, one process a core; the sweep by
`surveyor sweep`, which also plans, claims, reports and could retry. Both write run folders, and
both times include loading Python and compiling. Prints the ratio, what was lost, and the memory of
all processes of the sweep when a quarter of its runs was done and at its end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
seeds = {runs}
envs = ["Tree-10"]
episodes = 100
keep_going = true
[[agents]]
agent = "su-plus"
"""
LOOP = """
import os, sys
first, last, step, out = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
os.sched_setaffinity(0, {int(sys.argv[5])})
import surveyor as sv
for seed in range(first, last, step):
    sv.train("su-plus", "Tree-10", seed=seed, episodes=100, stop_when_solved=False, out=out)
"""


def resident(pid: int) -> int:
    """Bytes of a process and its children."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            if int(path.parent.name) == pid or int(fields[1]) == pid:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        plain, swept, spec = Path(folder, "plain"), Path(folder, "swept"), Path(folder, "it.toml")
        spec.write_text(SPEC.format(runs=runs))
        began = time.perf_counter()
        loops = [
            subprocess.Popen(
                [sys.executable, "-c", LOOP, *map(str, (i, runs, len(cores), plain, core))]
            )
            for i, core in enumerate(cores)
        ]
        assert all(loop.wait() == 0 for loop in loops)
        alone = time.perf_counter() - began
        print(f"{runs} runs in plain loops on {len(cores)} cores: {alone:.1f} s", flush=True)
        began, early, late = time.perf_counter(), 0, 0
        command = [sys.executable, "-m", "surveyor.cli", "sweep", str(spec), "--out", str(swept)]
        sweep = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while sweep.poll() is None:
            time.sleep(0.5)
            late = max(late, resident(sweep.pid)) if early else late
            if not early and len(list(swept.glob("*/result.json"))) >= runs / 4:
                early = resident(sweep.pid)
        taken = time.perf_counter() - began
        lost = runs - len(list(swept.glob("*/result.json")))
    print(f"the same as a sweep: {taken:.1f} s, {lost} lost")
    print(f"overhead: {taken / alone - 1:.1%} (goal: below 20%)")
    print(f"memory: {early / 1e6:.0f} MB after a quarter, {late / 1e6:.0f} MB at most afterwards")


if __name__ == "__main__":
    main()
