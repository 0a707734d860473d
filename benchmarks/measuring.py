"""Helpers of the benchmarks: processes pinned to cores, steps per second, best and spread.

A benchmark beside peers is a table of named parts. `run` measures each part in a process of its
own, all of them once, then all of them again.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class Part(NamedTuple):
    """One figure of a benchmark."""

    measure: Callable[[int], float]
    """Returns the figure, given the number of steps to time."""
    cores: int = 1
    """Cores of the process that measures it."""
    python: str = sys.executable
    """Interpreter of that process."""


QUIET = 0.1
"""Cores that other processes may use while a figure is taken."""
NOT_QUIET = "Do not compare the figures: PyTorch's threads can be ten times slower beside others."
Figures = dict[str, list[float]]
"""The figure of every part, once per repeat."""


def speed(agent: Any, env: Any, steps: int, after: int) -> float:
    """Return the environment steps per second of training, from `after` steps on.

    The runner is driven as a run in memory drives it, and the wall clock counts everything that it
    does, records included. Everything has been compiled after `after` steps.
    """
    import jax

    from surveyor.runs import api
    from surveyor.training import runner

    config = api.configure(agent, env, steps=10 * (after + steps))
    trained, began = runner(config.task, config.make()), None
    for chunk in trained.chunks(trained.start()):
        step = int(jax.block_until_ready(chunk.loop.learning).step)
        now = time.perf_counter()
        if began is None:
            began = (step, now) if step >= after else None
        elif step >= began[0] + steps:
            trained.close()
            return (step - began[0]) / (now - began[1])
    raise RuntimeError(f"{config.env} ended before {after + steps} steps.")


def arguments(doc: str | None, steps: int, counted: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks beside peers have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=steps, help=f"steps to time {counted}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--part", help="measure only this part, in this process")
    return parser


def run(script: str, parts: Mapping[str, Part], options: argparse.Namespace) -> Figures | None:
    """Measure all parts in turn, or print only the one that is asked for and return None."""
    if options.part is not None:
        print(parts[options.part].measure(options.steps))
        return None
    found: Figures = {name: [] for name in parts}
    others = []
    for _ in range(options.repeats):
        for name, part in parts.items():
            words = [part.python, script, "--part", name, "--steps", str(options.steps)]
            printed, busy = pinned(words, part.cores)
            found[name].append(float(printed.splitlines()[-1]))
            others.append(busy)
            print(f"{name}: {found[name][-1]:,.1f}{disturbance(busy)}", flush=True)
    disturbed = sum(busy > QUIET for busy in others)
    if disturbed:
        print(f"\nNOT QUIET: {disturbed} of {len(others)} measurements were disturbed. {NOT_QUIET}")
    print()
    return found


def pinned(words: Iterable[str], cores: int) -> tuple[str, float]:
    """Run a command on this many cores; return what it prints and the cores that others used."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    # On two cores everyone has the threads that it takes by itself: surveyor tells OpenBLAS to have
    # one, and would be half as fast with more, which spin.
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if cores == 1 else ()
    began, others = time.perf_counter(), used_by_others()
    done = subprocess.run(
        [*words],
        env=os.environ | dict.fromkeys(threads, "1"),
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout, (used_by_others() - others) / (time.perf_counter() - began)


def used_by_others() -> float:
    """Return the processor seconds so far that went to neither this process nor its children."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, *more = map(int, file.readline().split()[1:9])
    ours = sum(os.times()[:4])  # of this process and of its children that have ended
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK") - ours


def disturbance(busy: float) -> str:
    """Return a remark on a figure that was taken while others used this many cores."""
    return f"    (others used {busy:.1f} cores)" if busy > QUIET else ""


def median_time(function: Callable[[], object], repeats: int = 30) -> float:
    """Return the median seconds of a call, after a few calls that do not count."""
    taken = []
    for i in range(repeats + 5):
        begin = time.perf_counter()
        function()
        if i >= 5:
            taken.append(time.perf_counter() - begin)
    return sorted(taken)[repeats // 2]


def shown(values: list[float], best: Callable[[list[float]], float] = max, digits: int = 0) -> str:
    """Return the best of some figures, and the smallest and the largest."""
    low, high = (f"{each:,.{digits}f}" for each in (min(values), max(values)))
    return f"{best(values):,.{digits}f} ({low}–{high})"


def ratio(value: float, goal: float | None, *, most: bool = False) -> str:
    """Return the cells of a ratio and of its target, at least or at most `goal`."""
    if goal is None:
        return f"{value:.2f} | "
    met = value <= goal if most else value >= goal
    return f"{value:.2f} | {'≤' if most else '≥'} {goal:g}: {'met' if met else 'missed'}"


def spent(until: list[float], digits: int = 0) -> str:
    """Return the cells of the time that each part took, given the time until its end, and of all.

    Parts come from different runs, so one that takes next to nothing can be below zero.
    """
    each = [after - before for before, after in itertools.pairwise([0.0, *until])]
    return " | ".join(f"{time:.{digits}f}" for time in [*each, until[-1]])
