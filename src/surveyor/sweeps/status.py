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
    """Why it failed or was stopped, or why its configuration cannot be read."""
    config: Config | None = None


def write_plan(where: Storage, planned: list[Planned]) -> None:
    """Write the list of a sweep's runs, by which `read_all` knows runs that have not started."""
    content = json.dumps({"runs": {run.config.name: run.label for run in planned}}, indent=1)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    where.write(PLAN.format(digest), content + "\n")


def read_all(where: Storage) -> list[RunStatus]:
    """Return the status of every run in a folder or planned there; raise if there is none."""
    with where.mirrored() as folder:
        return [read(folder, name, label, where) for name, label in names(folder, where).items()]


def names(folder: Path, where: Storage) -> dict[str, str | None]:
    """Return every run in a folder, the local mirror of `where`, with its label if planned there.

    Planned runs come first, in the order of their plans. Raise `SurveyorError` if there is no run.
    """
    found: dict[str, str | None] = {**_read_plans(folder)}
    for name in sorted({path.parent.name for file in FILES for path in folder.glob(f"*/{file}")}):
        found.setdefault(name, None)
    if not found:
        raise SurveyorError(f"There are no runs in '{where}'.")
    return found


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
    state, reason = state_of(folder, name, where)
    result = run.result()
    try:
        config = run.config(any_agent=True)
    except SurveyorError as error:  # missing, damaged, or of another version
        if (folder / name / "config.json").exists():
            reason = reason or str(error)
        latest = None if result is None else number(result.get("return"))
        return RunStatus(name, label or "?", state, result=result, latest=latest, reason=reason)
    metrics: list[Record] = []
    with contextlib.suppress(OSError):
        metrics = run.metrics()
    returns = [number(r.get("test_return" if "returns" in r else "return")) for r in metrics]
    latest = next((value for value in reversed(returns) if value is not None), None)
    done = progress(result, metrics[-1] if metrics else {})
    label = label or agents.entry_of(config.agent).title
    return RunStatus(name, label, state, done, config.budget, result, latest, reason, config)


def state_of(folder: Path, name: str, where: Storage) -> tuple[str, str | None]:
    """Return the state of a run, and why it failed or stopped if known; its agent is not loaded."""
    run, written = RunFolder(folder / name), (folder / name / "config.json").exists()
    reason = run.failure()
    if written and run.result() is not None:
        return "done", reason
    if written and not _complete(run.config_content() or {}):
        return "failed", reason
    if (written or reason is None) and where.is_held(name):  # without files: it is being created
        return "running", reason
    if written:
        return "failed" if reason else "stopped", reason or run.stop_reason()
    started = any((folder / name / file).exists() for file in FILES)
    reason = reason or ("It has no config.json." if started else None)
    return "failed" if reason else "waiting", reason


def _complete(content: Record) -> bool:
    """Return whether config.json has what every run has, whichever version wrote it."""
    kinds = {"env": str, "agent": str, "hyperparameters": dict, "seed": int}
    budget = content.get("steps", content.get("episodes"))
    known = all(isinstance(content.get(key), kind) for key, kind in kinds.items())
    return known and isinstance(budget, int)


def progress(result: Record | None, last: Record) -> int:
    """Return the episodes or steps of a run, from its result or else its last metrics record."""
    ended = result or {}
    counts = (
        number(found)
        for found in (
            ended.get("steps", ended.get("episodes")),
            last.get("step", last.get("episode")),
        )
    )
    return int(next((count for count in counts if count is not None), 0))


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
    if each.reason and (each.config is None or each.state == "stopped" or not parts):
        parts.append(each.reason)
    return "; ".join(parts)
