"""What a page shows, read from run folders: plain data, and what is missing where."""

import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import agents, envs
from surveyor.errors import SurveyorError
from surveyor.report.packing import packed
from surveyor.report.showing import add_beliefs, add_episode
from surveyor.runs import storage
from surveyor.runs.config import versions
from surveyor.runs.folder import Record, RunFolder
from surveyor.sweeps import statistics, status, summary
from surveyor.sweeps.pictures import common
from surveyor.sweeps.status import Standing
from surveyor.sweeps.summary import Curves
from surveyor.training import problems

POINTS = 240
"""Points of a run's curves, each the mean of what lies between it and the one before."""
CURVE_POINTS = 100
"""The same for curves over seeds."""

Page = dict[str, Any]


def collect(
    source: str | Path,
    out: Path | None = None,
    *,
    episodes: bool = True,
    live: bool = False,
    env: Any = None,
) -> Page:
    """Everything about a run, or about the runs in a folder (or URL).

    Links to runs are made for a page at `out`. With `episodes`, an image environment's run is
    played for one greedy episode, if there is only one run; in `env`, if it has no name.
    """
    source = str(source)
    single = "://" not in source and any((Path(source) / name).exists() for name in status.FILES)
    if single:
        path = Path(source).resolve()
        where, title = storage.at(path.parent), path.name
    else:
        where = storage.at(source)
        title = source.rstrip("/") if "://" in source else Path(source).resolve().name
    with where.mirrored(beliefs=True) as folder:
        if not single and (folder / "config.json").exists():
            raise SurveyorError(
                f"'{source}' is a single run: give the URL of the folder around it, or a copy here."
            )
        alone = [status.stand(folder, title, None, where)] if single else None
        standings = alone or status.survey(where)
        runs, found = [], {}
        for standing in standings:
            link = None if out is None or "://" in source else folder / standing.name
            run, points = _run(folder, standing)
            run["link"] = None if link is None else _relative(link, out)
            runs.append(run)
            found[standing.name] = points
        standings, settings = summary.told_apart(standings)
        for run, said in zip(runs, settings, strict=True):
            run["settings"] = said
        room = add_beliefs(runs, standings, folder)
        more = {"episodes": episodes and not live, "live": live, "env": env}
        add_episode(runs, standings, folder, **more)
    curves = {} if single else summary.grouped(standings, found)
    return {
        "title": title,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "version": versions()["surveyor"],
        "live": live,
        "runs": runs,
        "curves": _curves(curves, standings),
        "scaling": [] if single else _scaling(standings),
        "beliefs_bytes": room,
    }


def _relative(path: Path, out: Path | None) -> str:
    return os.path.relpath(path.resolve(), (out or Path()).resolve().parent)


def _run(folder: Path, standing: Standing) -> tuple[Page, list[tuple[float, float]]]:
    """One row of the table with what is behind it, and its return over time."""
    config, result, path = standing.config, standing.result or {}, folder / standing.name
    missing, notes, records, lines = [], [], [], 0
    try:
        records, lines = RunFolder(path).read_metrics(skip=True)
    except OSError as error:
        missing.append(f"metrics.jsonl cannot be read: {error.strerror}.")
    if standing.state == "running" and not records:
        notes.append("It has only begun: there are no curves yet.")
    elif standing.state != "waiting" and not lines and not missing:
        missing.append("There is no metrics.jsonl, or nothing in it, so there are no curves.")
    bad = lines - len(records) - (standing.state == "running")  # the last may be half-written
    if bad > 0:
        missing.append(f"Of {lines} lines of metrics.jsonl {bad} are damaged and left out.")
    if (path / "result.json").exists() and not isinstance(_written(path / "result.json"), dict):
        missing.append("result.json is damaged.")
    points = [found for record in records if (found := summary.point(record)) is not None]
    run = {
        "name": standing.name,
        "label": standing.label,
        "state": standing.state,
        "env": None if config is None else config.env,
        "agent": None if config is None else agents.name_of(config.agent),
        "seed": None if config is None else config.seed,
        "done": standing.done,
        "budget": standing.budget,
        "unit": "steps" if config is not None and config.steps is not None else "episodes",
        "return": standing.latest,
        "solved_at": status.number(result.get("solved_at")),
        "seconds": status.number(result.get("seconds")),
        "reason": standing.reason,
        "config": _written(path / "config.json"),
        "metrics": _metrics(records),
        "missing": missing,
        "notes": notes,
    }
    return run, points


def _written(path: Path) -> Any:
    """The configuration as it was written, with the versions of then."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _metrics(records: list[Record]) -> dict[str, list[float | None]]:
    """Columns of numbers, by the names that the records have for them."""
    count = min(POINTS, len(records))
    edges = np.linspace(0, len(records), count + 1).astype(int)
    parts = [records[a:b] for a, b in itertools.pairwise(edges)]
    columns: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(name for record in records for name in record):
        if name in ("step", "frames", "episode", "episodes"):
            found = [status.number(part[-1].get(name)) for part in parts]
        elif name == "returns":
            name, found = "return", [_mean([(summary.point(r) or (0, None))[1] for r in part])
                                     for part in parts]  # fmt: skip
        else:
            found = [_mean([status.number(record.get(name)) for record in part]) for part in parts]
        if any(value is not None for value in found):
            columns[name] = found
    return columns


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _curves(found: Curves, standings: list[Standing]) -> list[Page]:
    """Mean return over seeds with 95%, for each environment and label."""
    units = {each.config.env: each.config.steps for each in standings if each.config is not None}
    panels: dict[str, list[Page]] = {}
    for (label, env), runs in found.items():
        records = max(len(run.times) for run in runs)
        times, values = common(runs, max(2, min(CURVE_POINTS, records)))
        if not len(times):
            continue
        series = {"label": label, "seeds": len(values), "x": packed(times)}
        series["mean"] = packed(values.mean(axis=0))
        if len(values) > 1:
            low, high = statistics.curve_interval(values)
            series |= {"low": packed(low), "high": packed(high)}
        panels.setdefault(env, []).append(series)
    return [
        {"env": env, "unit": "episodes" if units[env] is None else "steps", "series": series}
        for env, series in panels.items()
    ]


def _scaling(standings: list[Standing]) -> list[Page]:
    """How learning time grows with the size of a problem: medians over seeds, and every run."""
    found: dict[str, dict[str, dict[int, list[float | None]]]] = {}
    for each in standings:
        if each.config is None or each.result is None:
            continue
        family, size = problems.family(each.config.env), each.config.env.rpartition("-")[2]
        if family in envs.FAMILIES and size.isdigit():
            by_size = found.setdefault(family, {}).setdefault(each.label, {})
            solved = status.number(each.result.get("solved_at"))
            by_size.setdefault(int(size), []).append(solved)
    return [
        {"family": family, "series": [_growth(label, by_size) for label, by_size in labels.items()]}
        for family, labels in found.items()
        if len({size for by_size in labels.values() for size in by_size}) > 1
    ]


def _growth(label: str, by_size: dict[int, list[float | None]]) -> Page:
    sizes = sorted(by_size)
    return {
        "label": label,
        "sizes": sizes,
        "median": [_median(by_size[size]) for size in sizes],
        "runs": [[size, value] for size in sizes for value in by_size[size] if value is not None],
        "unsolved": sum(value is None for values in by_size.values() for value in values),
    }


def _median(values: list[float | None]) -> float | None:
    """Unsolved runs count as later than any solved one."""
    value = float(np.median([np.inf if value is None else value for value in values]))
    return value if np.isfinite(value) else None
