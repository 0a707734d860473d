"""How the runs of a folder stand: done, running, stopped, waiting or failed, and why."""

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
"""By any of these a run folder is known, whatever it lacks."""
PLAN = "sweep-{}.json"
"""What a sweep is to run, one file for each specification."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """One run."""

    name: str
    label: str
    state: str
    done: int = 0
    budget: int = 0
    result: Record | None = None
    latest: float | None = None
    """The newest return in its metrics."""
    reason: str | None = None
    config: Config | None = None


def note(where: Storage, planned: list[Planned]) -> None:
    """Write down what a sweep is to run: it is how `survey` knows of runs that have not begun."""
    content = json.dumps({"runs": {run.config.name: run.label for run in planned}}, indent=1)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    where.write(PLAN.format(digest), content + "\n")


def survey(where: Storage) -> list[Standing]:
    """Every run that is there, or was to be."""
    with where.mirrored() as folder:
        labels = _plan(folder)
        begun = sorted({path.parent.name for file in FILES for path in folder.glob(f"*/{file}")})
        names = [*labels, *(name for name in begun if name not in labels)]
        if not names:
            raise SurveyorError(f"There are no runs in '{where}'.")
        return [stand(folder, name, labels.get(name), where) for name in names]


def _plan(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.glob(PLAN.format("*"))):
        try:
            runs = json.loads(path.read_text("utf-8"))["runs"]
            found |= {str(name): str(label) for name, label in runs.items()}
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            continue
    return {name: label for name, label in found.items() if Path(name).name == name}


def stand(folder: Path, name: str, label: str | None, where: Storage) -> Standing:
    """How one of them stands; one that cannot be read does not hide the others."""
    try:
        return _stand(folder, name, label, where)
    except OSError as error:
        return Standing(name, label or "?", "failed", reason=f"It cannot be read: {error}.")


def _stand(folder: Path, name: str, label: str | None, where: Storage) -> Standing:
    run = RunFolder(folder / name)
    reason = run.failure()
    try:
        config = run.config()
    except SurveyorError as error:
        known = label or "?"
        if not (folder / name / "config.json").exists():
            if reason is None and where.is_held(name):  # its first files are on their way
                return Standing(name, known, "running")
            begun = any((folder / name / file).exists() for file in FILES)
            lacks = reason or ("It has no config.json." if begun else None)
            return Standing(name, known, "failed" if lacks else "waiting", reason=lacks)
        if (result := run.result()) is not None:  # of another version, perhaps
            return Standing(name, known, "done", result=result, reason=str(error))
        return Standing(name, known, "failed", reason=str(error))
    label = label or agents.name_of(config.agent)
    result = run.result()
    try:
        metrics = run.metrics()
    except OSError:
        metrics = []
    returns = [value for record in metrics if (value := _return(record)) is not None]
    latest = returns[-1] if returns else None
    last = metrics[-1] if metrics else {}
    done = int(number(last.get("step", last.get("episode"))) or 0)
    if result is not None:
        counted = number(result.get("steps", result.get("episodes")))
        state, done = "done", done if counted is None else int(counted)
    elif where.is_held(name):
        state = "running"
    else:
        state = "failed" if reason else "stopped"
    return Standing(name, label, state, done, config.budget, result, latest, reason, config)


def _return(record: Record) -> float | None:
    """The return in a record, of a run by steps or by episodes."""
    return number(record.get("test_return" if "returns" in record else "return"))


def number(value: Any) -> float | None:
    """A number, where it is one: a damaged file may hold anything."""
    try:
        found = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def lines(standings: list[Standing]) -> list[str]:
    """As a table, the unfinished first, with how many there are of each state below."""
    order = ("failed", "running", "stopped", "waiting", "done")
    width = max(len(standing.name) for standing in standings)
    found = []
    for standing in sorted(standings, key=lambda s: order.index(s.state)):
        share = f"{standing.done / standing.budget:.0%}" if standing.budget else ""
        now = "" if standing.latest is None else f"return {standing.latest:.4g}"
        told = standing.reason if standing.state == "failed" or not now else now
        line = f"{standing.name:{width}}  {standing.state:8} {share:>5}  {told or ''}"
        found.append(line.rstrip())
    counts = Counter(standing.state for standing in standings)
    total = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    runs = "1 run" if len(standings) == 1 else f"{len(standings)} runs"
    return [*found, f"{runs}: {total}."]
