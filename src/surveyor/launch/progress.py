"""Progress of training: bars on a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TimeRemainingColumn

from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.runs.run import done

LINE_SECONDS = 5.0
FEW = 12
"""Number of runs up to which all are shown; of more, only those in training."""


def log(text: str) -> None:
    """Print a message to standard error immediately."""
    print(text, file=sys.stderr, flush=True)


def describe(record: Record, result: Record) -> str:
    """Return the state of a run in a few words, from its newest record and its result so far."""
    if "steps" in result:
        parts = {
            "{} episodes": result["episodes"],
            "return {:.4g}": result.get("return"),
            "{:,.0f} steps/s": record.get("steps_per_second") or None,
        }
    else:
        parts = {
            "greedy {:.3g}": record.get("test_return"),
            "length {}": max(record["lengths"]),
            "first success {}": result.get("first_success"),
            "solved at {}": result.get("solved_at"),
        }
    return ", ".join(text.format(value) for text, value in parts.items() if value is not None)


class Overview(contextlib.ExitStack):
    """Shows runs, while others had `ended` before: bars on a terminal, else plain lines."""

    def __init__(self, configs: list[Config], ended: int = 0):
        super().__init__()
        console = Console(file=sys.stderr)
        self._configs, self._live, self._written = configs, console.is_terminal, time.monotonic()
        bar, used, left = BarColumn(16), "{task.completed}/{task.total}", TimeRemainingColumn()
        columns = ("{task.description}", bar, used, left, "{task.fields[status]}")
        self._progress = Progress(*columns, console=console, disable=not self._live)
        total = len(configs) + ended
        told = {"visible": total > 1, "unit": "", "status": ""}
        self._all = self._progress.add_task("runs", total=total, completed=ended, **told)
        self._tasks: dict[int, TaskID] = {}
        for number in range(len(configs)) if len(configs) <= FEW else ():
            self._task(number)
        self.enter_context(self._progress)

    def update(self, number: int, record: Record, now: Record) -> None:
        used, status = now.get("frames", done(now)), describe(record, now)
        self._progress.update(self._task(number), completed=used, status=status)
        if not self._live and time.monotonic() - self._written > LINE_SECONDS:
            self._written = time.monotonic()
            begun = [
                task for task in self._progress.tasks if task.id == self._all or task.completed
            ]
            shown = [task for task in begun if task.visible and not task.finished]
            line = "{0.description}: {0.completed} of {0.total}{0.fields[unit]} {0.fields[status]}"
            log("; ".join(line.format(task).rstrip() for task in shown))

    def end(self, number: int, result: Record) -> None:
        if "failure" in result:
            log(f"{self._configs[number].name} failed: {result['failure']}")
        self._progress.advance(self._all, int(result["finished"]))
        failed = "failed" if "failure" in result else "stopped"
        status, many = "done" if result["finished"] else failed, len(self._configs) > FEW
        self._progress.update(self._task(number), status=status, visible=not many)

    def _task(self, number: int) -> TaskID:
        if number not in self._tasks:
            config = self._configs[number]
            total = config.family.frames_per_step * config.budget
            status = "compiling" if len(self._configs) == 1 else "waiting or compiling"
            told: dict[str, Any] = {"unit": f" {config.unit},", "status": status}
            self._tasks[number] = self._progress.add_task(config.name, total=total, **told)
        return self._tasks[number]


def spent(now: Record) -> str:
    """Return the frames, steps or episodes of a result so far, with the unit."""
    unit = next(unit for unit in ("frames", "steps", "episodes") if unit in now)
    return f"{now[unit]} {unit}"


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def summary(result: Record) -> str:
    """Return a sentence about how a run ended."""
    episodes, trained = result["episodes"], f"{result['seconds']:.1f} s of training"
    trained += f"; stopped because {result['stopped']}" if result.get("stopped") else ""
    if "steps" in result:
        mean = f"mean return {result['return']:.4g} lately" if "return" in result else "none ended"
        return f"{spent(result)}, {episodes} episodes, {mean} ({trained})"
    first, solved = result["first_success"], result["solved_at"]
    if solved is not None:
        return f"solved at episode {solved} (first success at {first}, {trained})"
    seen = "the goal was never reached" if first is None else f"first success at {first}"
    return f"not solved in {episodes} episodes ({seen}, {trained})"
