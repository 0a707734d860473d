"""Status of the runs in a folder: done, running, stopped, waiting or failed, and why."""

import contextlib
import dataclasses
import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from surveyor import agents
from surveyor.errors import SurveyorError
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.storage import Storage
from surveyor.sweeps.spec import Planned

STATES = ("done", "running", "stopped", "waiting", "failed")
FILES = ("config.json", "metrics.jsonl", "result.json", "failure.json", "checkpoint", "beliefs")
"""Files of which any one makes a folder a run folder."""
PLAN = "sweep-{}.json"
"""File that lists the runs of a sweep, one for each specification."""


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """Status of the run in the folder `name`."""

    name: str
    label: str
    """Name of its agent in plots; ? if it cannot be read."""
    state: str
    """One of `STATES`."""
    done: int = 0
    budget: int = 0
    """Episodes or steps so far, and to train for."""
    result: Record | None = None
    latest: float | None = None
    """Newest return in its metrics."""
    reason: str | None = None
    """Why it failed, or why its configuration cannot be read."""
    config: Config | None = None


def write_plan(where: Storage, planned: list[Planned]) -> None:
    """Write the list of a sweep's runs, by which `read_all` knows runs that have not started."""
    content = json.dumps({"runs": {run.config.name: run.label for run in planned}}, indent=1)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    where.write(PLAN.format(digest), content + "\n")


def read_all(where: Storage) -> list[RunStatus]:
    """Return the status of every run in a folder or planned there; raise if there is none."""
    with where.mirrored() as folder:
        labels = _read_plans(folder)
        started = sorted({path.parent.name for file in FILES for path in folder.glob(f"*/{file}")})
        names = [*labels, *(name for name in started if name not in labels)]
        if not names:
            raise SurveyorError(f"There are no runs in '{where}'.")
        return [read(folder, name, labels.get(name), where) for name in names]


def _read_plans(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.glob(PLAN.format("*"))):
        try:
            runs = json.loads(path.read_text("utf-8"))["runs"]
            found |= {str(name): str(label) for name, label in runs.items()}
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            continue
    return {name: label for name, label in found.items() if Path(name).name == name}


def read(folder: Path, name: str, label: str | None, where: Storage) -> RunStatus:
    """Return the status of the run `name` in a folder, the local mirror of `where`.

    It has failed if it cannot be read; its agent's title is the label if None.
    """
    try:
        return _read(folder, name, label, where)
    except OSError as error:
        return RunStatus(name, label or "?", "failed", reason=f"It cannot be read: {error}.")


def _read(folder: Path, name: str, label: str | None, where: Storage) -> RunStatus:
    run = RunFolder(folder / name)
    try:
        config = run.config()
    except SurveyorError as error:
        return _unreadable(folder, name, label or "?", where, str(error))
    result, reason = run.result(), run.failure()
    metrics: list[Record] = []
    with contextlib.suppress(OSError):
        metrics = run.metrics()
    returns = [number(r.get("test_return" if "returns" in r else "return")) for r in metrics]
    latest = next((value for value in reversed(returns) if value is not None), None)
    last = metrics[-1] if metrics else {}
    done = int(number(last.get("step", last.get("episode"))) or 0)
    if result is not None:
        counted = number(result.get("steps", result.get("episodes")))
        state, done = "done", done if counted is None else int(counted)
    elif where.is_held(name):
        state = "running"
    else:
        state = "failed" if reason else "stopped"
    label = label or agents.entry_of(config.agent).title
    return RunStatus(name, label, state, done, config.budget, result, latest, reason, config)


def _unreadable(folder: Path, name: str, label: str, where: Storage, error: str) -> RunStatus:
    """Return the status of a run whose configuration is missing, damaged or of another version."""
    run = RunFolder(folder / name)
    failure = run.failure()
    if (folder / name / "config.json").exists():
        if (result := run.result()) is None:
            return RunStatus(name, label, "failed", reason=error)
        latest = number(result.get("return"))
        return RunStatus(name, label, "done", result=result, latest=latest, reason=error)
    if failure is None and where.is_held(name):  # its first files are being written
        return RunStatus(name, label, "running")
    started = any((folder / name / file).exists() for file in FILES)
    reason = failure or ("It has no config.json." if started else None)
    return RunStatus(name, label, "failed" if reason else "waiting", reason=reason)


def number(value: Any) -> float | None:
    """Return a finite number, or None: a damaged file may hold anything."""
    try:
        found = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def lines(statuses: list[RunStatus]) -> list[str]:
    """Return a table of the runs, unfinished ones first, and the number of runs in each state."""
    order = ("failed", "running", "stopped", "waiting", "done")
    width = max(len(each.name) for each in statuses)
    found = []
    for each in sorted(statuses, key=lambda each: order.index(each.state)):
        share = f"{each.done / each.budget:.0%}" if each.budget else ""
        found.append(f"{each.name:{width}}  {each.state:8} {share:>5}  {_remark(each)}".rstrip())
    counts = Counter(each.state for each in statuses)
    total = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    runs = "1 run" if len(statuses) == 1 else f"{len(statuses)} runs"
    return [*found, f"{runs}: {total}."]


def _remark(each: RunStatus) -> str:
    """Return why a run failed, else its newest return; both for one that cannot be loaded."""
    if each.state == "failed":
        return each.reason or ""
    parts = [] if each.latest is None else [f"return {each.latest:.4g}"]
    if each.config is None and each.result and (solved := number(each.result.get("solved_at"))):
        parts.append(f"solved at {solved:g}")
    if each.reason and (each.config is None or not parts):
        parts.append(each.reason)
    return "; ".join(parts)
