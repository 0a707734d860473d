"""What is shown while training: bars on a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from surveyor.training.folder import Record

LINE_SECONDS = 5.0
"""How often a plain line is written, for each run."""


def describe(record: Record, result: Record) -> str:
    """Where a run stands, in a few words."""
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
    """Shows the progress of several runs on standard error."""

    def __init__(
        self, names: list[str], total: int, *, unit: str = "episode ", quiet: bool = False
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

    def __enter__(self) -> "Reporter":
        self._progress.start()
        for name in self._names:
            self._tasks[name] = self._progress.add_task(name, total=self._total, status="")
            self._status(name, "compiling")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def update(self, name: str, record: Record, result: Record) -> None:
        """A chunk has ended."""
        done = result["steps"] if "steps" in result else result["episodes"]
        self.show(name, done, describe(record, result))

    def show(self, name: str, done: int, status: str) -> None:
        """So much of the total is done."""
        if self._live:
            self._progress.update(self._tasks[name], completed=done, status=status)
        elif time.monotonic() - self._written[name] > LINE_SECONDS:
            self._written[name] = time.monotonic()
            self._line(f"{name}: {self._unit}{done} of {self._total}, {status}")

    def end(self, name: str, sentence: str) -> None:
        """A run is over; its bar stays where it is."""
        self._status(name, sentence)

    def _status(self, name: str, status: Any) -> None:
        if self._live:
            self._progress.update(self._tasks[name], status=status)

    def _line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)


class Overview:
    """Shows how far a study of many runs has come, on standard error."""

    def __init__(self, runs: int, done: int):
        self._reporter = Reporter(["runs"], runs, unit="")
        self._done = done
        self._latest: dict[Any, str] = {}

    def __enter__(self) -> "Overview":
        self._reporter.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._reporter.__exit__(*error)

    def update(self, config: Any, record: Record, result: Record) -> None:
        """A chunk of one of the runs has ended, and perhaps the run."""
        done = result.get("steps", result["episodes"])
        ended = result.get("solved_at") is not None or done >= config.budget
        self._latest[config.env] = f"{config.env} seed {config.seed} at {done}"
        if ended:
            self._done += 1
            self._latest.pop(config.env, None)
        self._reporter.show("runs", self._done, ", ".join(list(self._latest.values())[-2:]))


def summary(result: Record) -> str:
    """How a run ended, as a sentence."""
    episodes, seconds = result["episodes"], result["seconds"]
    if "steps" in result:
        mean = f"mean return {result['return']:.4g} lately" if "return" in result else "none ended"
        return f"{result['steps']} steps, {episodes} episodes, {mean} ({seconds:.1f} s of training)"
    if result["solved_at"] is not None:
        return (
            f"solved at episode {result['solved_at']} (first success at {result['first_success']},"
            f" {seconds:.1f} s of training)"
        )
    found = result["first_success"]
    seen = "the goal was never reached" if found is None else f"first success at {found}"
    return f"not solved in {episodes} episodes ({seen}, {seconds:.1f} s of training)"
