"""The runs of a benchmark: trained on all cores, each recorded as one line of a text file."""

import dataclasses
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surveyor import agents
from surveyor.agents.options import values
from surveyor.errors import StoppedError, SurveyorError, unknown
from surveyor.launch import pool
from surveyor.launch.progress import Overview
from surveyor.launch.work import RunOptions
from surveyor.runs import json_files
from surveyor.runs.callbacks import Callback, Evaluate, folder_of
from surveyor.runs.config import Config, commit, versions
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.run import Run
from surveyor.sweeps.summary import points

IN_A_ROW = 3
"""Evaluations in a row that have to reach a threshold."""
POINTS = 50
"""Points of a training curve that are kept."""
LEARNT = "it has learnt"
"""Why a run ended before its budget."""
COUNTS = "counts.json"
"""File of a run folder with what its environment counted."""


class Watch(NamedTuple):
    """How a run is evaluated, and when it may end early."""

    every: int
    """Steps between evaluations."""
    episodes: int
    """Greedy episodes in each; 0 where the environment itself counts, as bsuite's do."""
    sampled: int = 0
    """Episodes with samples of the belief in each."""
    until: float | None = None
    """End when greedy evaluations in a row, and one with samples if there are any, reach this mean
    return; None to use the whole budget."""


class Trial(NamedTuple):
    """One run of a benchmark."""

    label: str
    """Name of the agent in tables and pictures."""
    config: Config
    watch: Watch


class Learnt(Callback):
    """Stop a run that has learnt its task, by the evaluations of another callback."""

    def __init__(self, evaluate: Evaluate, until: float, sampled: bool):
        self.evaluate, self.until, self.sampled = evaluate, until, sampled

    def chunk(self, run: Run) -> None:
        records = self.evaluate.records
        sampled = not self.sampled or reached(records, self.until, "sampled", 1) is not None
        if sampled and reached(records, self.until) is not None:
            run.stop(LEARNT)


class Counts(Callback):
    """Keep what a compiled environment of bsuite counts, and stop when it has seen enough."""

    def __init__(self, every: int):
        self.every = every

    def chunk(self, run: Run) -> None:
        counts = counted(run)
        if counts["solved_at"] or counts["episodes"] >= run.runner.env.inner.episodes:
            run.stop(LEARNT)

    def pause(self, at: int) -> int:
        return (at // self.every + 1) * self.every

    def end(self, run: Run) -> None:
        json_files.write(folder_of(run).path / COUNTS, counted(run))


def counted(run: Run) -> Record:
    """Return the counts of a run over all of its environments."""
    tally = run.loop.env.tally
    sums = {name: int(np.sum(getattr(tally, name))) for name in ("episodes", "bad")}
    best, solved = float(np.max(tally.best)), int(np.max(tally.solved_at))
    return {**sums, "total": float(np.sum(tally.total)), "best": best, "solved_at": solved}


def reached(
    records: Iterable[Record], until: float, kind: str = "mean_return", in_a_row: int = IN_A_ROW
) -> int | None:
    """Return when the first of this many evaluations in a row reached a mean return, or None."""
    row: list[int] = []
    for record in records:
        row = [*row, record["at"]] if record[kind] >= until else []
        if len(row) == in_a_row:
            return row[0]
    return None


def watchers(watches: dict[str, Watch], config: Config) -> list[Callback]:
    """Return the callbacks of a run, by its name."""
    watch = watches[config.name]
    if not watch.episodes:
        return [Counts(watch.every)]
    how: Any = {"every": watch.every, "episodes": watch.episodes, "sampled": watch.sampled}
    evaluate = Evaluate(**how, keep_best=False)
    if watch.until is None:
        return [evaluate]
    return [evaluate, Learnt(evaluate, watch.until, watch.sampled > 0)]


def labelled(names: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the agents that were asked for, or all, with their labels; raise for unknown ones."""
    for name in names:
        if name not in known:
            raise unknown("agent of this benchmark", name, known)
    return {name: label for name, label in known.items() if not names or name in names}


def train(trials: list[Trial], out: Path, name: str) -> list[Record]:
    """Train the runs that have no line in the file yet, and return the lines of all.

    Raise `StoppedError` after Ctrl-C, and `SurveyorError` if a run failed.
    """
    ledger = out / f"{name}.jsonl"
    known = read(ledger)
    waiting = [trial for trial in trials if trial.config.name not in known]
    if waiting:
        results = _train(waiting, len(trials), out / "runs" / name, ledger)
        failures = [result["failure"] for result in results if result and "failure" in result]
        if failures:
            raise SurveyorError(failures[0])
        known = read(ledger)
        if any(trial.config.name not in known for trial in waiting):
            raise StoppedError
    return [known[trial.config.name] | {"label": trial.label} for trial in trials]


def read(ledger: Path) -> dict[str, Record]:
    """Return the lines of a results file by the names of their runs; raise if one is damaged."""
    try:
        lines = ledger.read_text("utf-8").splitlines() if ledger.exists() else []
        return {entry["run"]: entry for entry in map(json.loads, lines)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = f"cannot be read ({error}); remove the line that is damaged."
        raise SurveyorError(f"'{ledger}' {said}") from None


def _train(trials: list[Trial], total: int, runs: Path, ledger: Path) -> list[Record | None]:
    trials = sorted(trials, key=lambda trial: -trial.config.budget)
    configs = [trial.config for trial in trials]
    watches = {trial.config.name: trial.watch for trial in trials}
    with Overview(configs, total - len(configs)) as overview:
        callback = _Recorder(overview, trials, runs, ledger)
        options = RunOptions(callbacks=partial(watchers, watches))
        return pool.train_all(configs, runs, callback, options)


@dataclasses.dataclass
class _Recorder:
    """Writes a line for every run that has ended, and shows the progress of all."""

    overview: Overview
    trials: list[Trial]
    runs: Path
    ledger: Path

    def update(self, number: int, record: Record, now: Record) -> None:
        self.overview.update(number, record, now)

    def end(self, number: int, result: Record) -> None:
        ended = result["finished"] or result.get("stopped") == LEARNT
        if ended:
            trial = self.trials[number]
            folder = RunFolder(self.runs / trial.config.name)
            line = json.dumps(entry(trial, folder, result))
            with open(self.ledger, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
            shutil.rmtree(folder.path / "checkpoint" / "replay", ignore_errors=True)
        self.overview.end(number, {**result, "finished": ended})


def entry(trial: Trial, folder: RunFolder, result: Record) -> Record:
    """Return all that is kept of a run: what it was, its evaluations and its training curve."""
    config = trial.config
    curve = points(folder.metrics())
    tests = folder.evaluations()
    return {
        "run": config.name,
        "env": config.env,
        "agent": agents.name_of(config.agent),
        "seed": config.seed,
        "budget": config.budget,
        "steps": result.get("steps"),
        "episodes": result["episodes"],
        "seconds": round(result["seconds"], 1),
        "evaluations": [[each["at"], short(each["mean_return"])] for each in tests],
        "sampled": [[each["at"], short(each["sampled"])] for each in tests if "sampled" in each],
        "training": [[int(at), short(mean)] for at, mean in thin(curve)],
        "counts": json_files.read(folder.path / COUNTS),
        "options": values(config.agent),
        "version": versions()["surveyor"],
        "commit": commit(),
    }


def thin(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a curve as at most `POINTS` means over equally many of its points."""
    groups = np.array_split(np.array(curve).reshape(-1, 2), min(POINTS, max(1, len(curve))))
    return [(group[-1, 0], group[:, 1].mean()) for group in groups if len(group)]


def short(value: float) -> float:
    """Return a number with five digits."""
    return float(f"{value:.5g}")


def of_entry(entry: Record, kind: str = "evaluations") -> list[Record]:
    """Return the evaluations of a run as `reached` takes them."""
    return [{"at": at, "mean_return": mean} for at, mean in entry[kind]]
