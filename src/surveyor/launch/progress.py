"""Progress of training: bars on a terminal, plain lines elsewhere."""

import dataclasses
import sys
import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table

from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.runs.run import done

LINE_SECONDS = 5.0
"""Seconds between two plain lines about a run."""


def describe(record: Record, result: Record) -> str:
    """Return the state of a run in a few words, from its newest record and its result so far."""
    if "steps" in result:
        return _describe_steps(record, result)
    parts = []
    if record.get("test_return") is not None:
        parts.append(f"greedy {record['test_return']:.3g}")
    parts.append(f"length {max(record['lengths'])}")
    if result["first_success"] is not None:
        parts.append(f"first success {result['first_success']}")
    if result["solved_at"] is not None:
        parts.append(f"solved at {result['solved_at']}")
    return ", ".join(parts)


def _describe_steps(record: Record, result: Record) -> str:
    parts = [f"{result['episodes']} episodes"]
    if "return" in result:
        parts.append(f"return {result['return']:.4g}")
    if record.get("steps_per_second"):
        parts.append(f"{record['steps_per_second']:,.0f} steps/s")
    return ", ".join(parts)


class Reporter:
    """Shows the progress of runs with one budget on standard error.

    **Arguments:**

    - `names`: the names of the runs.
    - `total`: the budget.
    - `unit`: what the budget counts, in the plural.
    - `quiet`: True to show nothing.
    """

    def __init__(
        self, names: list[str], total: int, *, unit: str = "episodes", quiet: bool = False
    ):
        console = Console(file=sys.stderr)
        self._live = console.is_terminal and not quiet
        self._quiet = quiet
        self._names = names
        self._total = total
        self._unit = unit
        self._written = dict.fromkeys(names, time.monotonic())
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[status]}"),
            console=console,
            disable=not self._live,
        )
        self._tasks: dict[str, TaskID] = {}

    @classmethod
    def of(cls, names: list[str], config: Config) -> "Reporter":
        """Return a reporter for runs with the budget of this one, in the unit of its family."""
        return cls(names, config.family.frames_per_step * config.budget, unit=config.unit)

    def __enter__(self) -> "Reporter":
        self._progress.start()
        for name in self._names:
            self._tasks[name] = self._progress.add_task(name, total=self._total, status="")
            self._status(name, "compiling")
        return self

    def __exit__(self, *raised: object) -> None:
        self._progress.stop()

    def update(self, number: int, record: Record, now: Record) -> None:
        """Show the progress of a run after a chunk of training."""
        self.show(self._names[number], now.get("frames", done(now)), describe(record, now))

    def show(self, name: str, done: int, status: str) -> None:
        """Show how much of the budget is used, and a status."""
        if self._live:
            self._progress.update(self._tasks[name], completed=done, status=status)
        elif time.monotonic() - self._written[name] > LINE_SECONDS:
            self._written[name] = time.monotonic()
            self._line(f"{name}: {done} of {self._total} {self._unit}, {status}")

    def end(self, number: int, result: Record) -> None:
        """Show that a run has ended or stopped."""
        failed = "failed" if "failure" in result else "stopped"
        self._status(self._names[number], "done" if result["finished"] else failed)

    def _status(self, name: str, status: Any) -> None:
        if self._live:
            self._progress.update(self._tasks[name], status=status)

    def _line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)


class Overview:
    """Shows the progress of many runs on standard error: a table on a terminal, else plain lines.

    **Arguments:**

    - `configs`: the runs to be trained.
    - `ended`: the number of runs that had ended before.
    """

    def __init__(self, configs: list[Config], ended: int = 0):
        console = Console(file=sys.stderr)
        self._configs, self._total = configs, len(configs) + ended
        self._ended, self._failed, self._began = ended, 0, time.monotonic()
        self._running: dict[int, Row] = {}
        self._live = Live(console=console, refresh_per_second=2) if console.is_terminal else None
        self._written = time.monotonic()

    def __enter__(self) -> "Overview":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, number: int, record: Record, now: Record) -> None:
        """Show the progress of a run after a chunk of training."""
        config = self._configs[number]
        row = self._running.setdefault(number, Row(config.name, config.budget, done(now)))
        row.done, row.status = done(now), describe(record, now)
        self._show()

    def end(self, number: int, result: Record) -> None:
        """Show that a run has ended, stopped or failed."""
        self._running.pop(number, None)
        self._ended += bool(result["finished"])
        if "failure" in result:
            self._failed += 1
            text = f"{self._configs[number].name} failed: {result['failure']}"
            print(text, file=sys.stderr, flush=True)
        self._show()

    def _show(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        title = f"runs: {self._ended} of {self._total}{failed}"
        if self._live is not None:
            self._live.update(self._table(title))
        elif time.monotonic() - self._written > LINE_SECONDS:
            self._written = time.monotonic()
            rows = [f"{row.name} at {row.done}" for row in self._running.values()]
            print(", ".join([title, *rows]), file=sys.stderr, flush=True)

    def _table(self, title: str) -> Table:
        spent = time.monotonic() - self._began
        table = Table(title=f"{title}, {clock(spent)}", title_justify="left", box=None)
        for name in ("run", "progress", "time left", ""):
            table.add_column(name, justify="left", no_wrap=True)
        for row in self._running.values():
            share = row.done / max(1, row.total)
            bar = ProgressBar(total=1.0, completed=share, width=16)
            table.add_row(row.name, bar, clock(row.seconds_left()), row.status)
        return table


@dataclasses.dataclass
class Row:
    """A run in the table of `Overview`."""

    name: str
    total: int
    done: int
    status: str = ""

    def __post_init__(self):
        self._first, self._began = self.done, time.monotonic()

    def seconds_left(self) -> float | None:
        """Return the time left at the speed since the row was made, or None if it is unknown."""
        new, spent = self.done - self._first, time.monotonic() - self._began
        return (self.total - self.done) * spent / new if new > 0 else None


def spent(now: Record) -> str:
    """Return the frames, steps or episodes of a result so far, with the unit."""
    for unit in ("frames", "steps"):
        if unit in now:
            return f"{now[unit]} {unit}"
    return f"{now['episodes']} episodes"


def clock(seconds: float | None) -> str:
    """Return a time as hours, minutes and seconds."""
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def summary(result: Record) -> str:
    """Return a sentence about how a run ended."""
    episodes, seconds = result["episodes"], result["seconds"]
    if "steps" in result:
        mean = f"mean return {result['return']:.4g} lately" if "return" in result else "none ended"
        return f"{spent(result)}, {episodes} episodes, {mean} ({seconds:.1f} s of training)"
    if result["solved_at"] is not None:
        return (
            f"solved at episode {result['solved_at']} (first success at {result['first_success']},"
            f" {seconds:.1f} s of training)"
        )
    found = result["first_success"]
    seen = "the goal was never reached" if found is None else f"first success at {found}"
    return f"not solved in {episodes} episodes ({seen}, {seconds:.1f} s of training)"
