"""Progress of training: bars on a terminal, plain lines elsewhere."""

import contextlib
import dataclasses
import sys
import time

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table

from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.runs.run import done

LINE_SECONDS = 5.0
"""Seconds between two plain lines about a run."""


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


class Reporter(contextlib.ExitStack):
    """Shows the progress of the named runs on standard error, in the budget that `config` has."""

    def __init__(self, names: list[str], config: Config):
        super().__init__()
        console = Console(file=sys.stderr)
        self._names, self._live = names, console.is_terminal
        self._total, self._unit = config.family.frames_per_step * config.budget, config.unit
        self._written = [time.monotonic()] * len(names)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[status]}"),
            console=console,
            disable=not self._live,
        )
        add = self._progress.add_task
        self._tasks = [add(name, total=self._total, status="compiling") for name in names]
        self.enter_context(self._progress)

    def update(self, number: int, record: Record, now: Record) -> None:
        used, status = now.get("frames", done(now)), describe(record, now)
        self._progress.update(self._tasks[number], completed=used, status=status)
        if not self._live and time.monotonic() - self._written[number] > LINE_SECONDS:
            self._written[number] = time.monotonic()
            log(f"{self._names[number]}: {used} of {self._total} {self._unit}, {status}")

    def end(self, number: int, result: Record) -> None:
        failed = "failed" if "failure" in result else "stopped"
        self._progress.update(self._tasks[number], status="done" if result["finished"] else failed)


class Overview(contextlib.ExitStack):
    """Shows many runs, while others had `ended` before: a table on a terminal, else plain lines."""

    def __init__(self, configs: list[Config], ended: int = 0):
        super().__init__()
        console = Console(file=sys.stderr)
        self._configs, self._total = configs, len(configs) + ended
        self._ended, self._failed, self._began = ended, 0, time.monotonic()
        self._running: dict[int, Row] = {}
        live = Live(console=console, refresh_per_second=2) if console.is_terminal else None
        self._live = live and self.enter_context(live)
        self._written = time.monotonic()

    def update(self, number: int, record: Record, now: Record) -> None:
        config = self._configs[number]
        row = self._running.setdefault(number, Row(config.name, config.budget, done(now)))
        row.done, row.status = done(now), describe(record, now)
        self._show()

    def end(self, number: int, result: Record) -> None:
        self._running.pop(number, None)
        self._ended += bool(result["finished"])
        if "failure" in result:
            self._failed += 1
            log(f"{self._configs[number].name} failed: {result['failure']}")
        self._show()

    def _show(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        title = f"runs: {self._ended} of {self._total}{failed}"
        if self._live is not None:
            self._live.update(self._table(title))
        elif time.monotonic() - self._written > LINE_SECONDS:
            self._written = time.monotonic()
            rows = [f"{row.name} at {row.done}" for row in self._running.values()]
            log(", ".join([title, *rows]))

    def _table(self, title: str) -> Table:
        title = f"{title}, {clock(time.monotonic() - self._began)}"
        table = Table(title=title, title_justify="left", box=None)
        for name in ("run", "progress", "time left", ""):
            table.add_column(name, justify="left", no_wrap=True)
        for row in self._running.values():
            bar = ProgressBar(total=max(1, row.total), completed=row.done, width=16)
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
    unit = next(unit for unit in ("frames", "steps", "episodes") if unit in now)
    return f"{now[unit]} {unit}"


def clock(seconds: float | None) -> str:
    """Return a time as hours, minutes and seconds."""
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def summary(result: Record) -> str:
    """Return a sentence about how a run ended."""
    episodes, trained = result["episodes"], f"{result['seconds']:.1f} s of training"
    if "steps" in result:
        mean = f"mean return {result['return']:.4g} lately" if "return" in result else "none ended"
        return f"{spent(result)}, {episodes} episodes, {mean} ({trained})"
    first, solved = result["first_success"], result["solved_at"]
    if solved is not None:
        return f"solved at episode {solved} (first success at {first}, {trained})"
    seen = "the goal was never reached" if first is None else f"first success at {first}"
    return f"not solved in {episodes} episodes ({seen}, {trained})"
