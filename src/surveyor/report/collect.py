"""The data of a report, read from run folders, with notes on what is missing."""

import itertools
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import agents
from surveyor.errors import SurveyorError
from surveyor.report.page import packed
from surveyor.report.showing import Page, add_beliefs, add_episode
from surveyor.runs import storage
from surveyor.runs.config import versions
from surveyor.runs.folder import Record, RunFolder
from surveyor.sweeps import pictures, statistics, status, summary
from surveyor.sweeps.status import RunStatus

POINTS = 240
"""Points of a run's curves, each the mean of the records since the previous point."""


def collect(
    source: str | Path,
    out: Path | None = None,
    episodes: bool = True,
    live: bool = False,
    env: Any = None,
) -> Page:
    """Return the data of a run, of the runs in a folder, or of those at a folder's URL.

    Links to runs are relative to `out`, the file of the page; None makes no links. A single run on
    images plays a greedy episode if `episodes`, in `env` if given; a `live` page plays none.
    """
    remote, path = "://" in str(source), Path(source).resolve()
    single = not remote and any((path / name).exists() for name in status.FILES)
    where = storage.at(path.parent if single else source)
    title = str(source).rstrip("/") if remote else path.name
    with where.mirrored(beliefs=True) as folder:
        if not single and (folder / "config.json").exists():
            said = "is a single run: give the URL of the folder around it, or a copy here"
            raise SurveyorError(f"'{source}' {said}.")
        statuses = [status.read(folder, title, None, where)] if single else status.read_all(where)
        labelled, settings = summary.distinguish(statuses)
        runs, found = [], {}
        base = None if out is None or remote else out.resolve().parent
        for each, text in zip(statuses, settings, strict=True):
            run, found[each.name] = _run(folder, each)
            link = base and os.path.relpath((folder / each.name).resolve(), base)
            runs.append({**run, "link": link, "settings": text})
        size = add_beliefs(runs, statuses, folder)
        add_episode(runs, statuses, folder, episodes and not live, live, env)
    return {
        "title": title,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "version": versions()["surveyor"],
        "live": live,
        "runs": runs,
        "curves": [] if single else _curves(summary.grouped(labelled, found), statuses),
        "scaling": [] if single else _scaling(labelled),
        "beliefs_bytes": size,
    }


def _run(folder: Path, each: RunStatus) -> tuple[Page, list[tuple[float, float]]]:
    """Return a run's row of the table with its details, and its return over time."""
    config, result = each.config, each.result or {}
    records, missing, notes = _records(folder / each.name, each.state)
    names = ("name", "label", "state", "done", "budget", "reason")
    run = {
        **{key: getattr(each, key) for key in names},
        **{key: getattr(config, key, None) for key in ("env", "seed")},
        "agent": None if config is None else agents.name_of(config.agent),
        "unit": "steps" if config is not None and config.steps is not None else "episodes",
        "return": each.latest,
        "solved_at": status.number(result.get("solved_at")),
        "seconds": status.number(result.get("seconds")),
        "config": _read_json(folder / each.name / "config.json"),
        "metrics": _metrics(records),
        "missing": missing,
        "notes": notes,
    }
    return run, summary.points(records)


def _records(path: Path, state: str) -> tuple[list[Record], list[str], list[str]]:
    """Return a run's metrics, what is missing or damaged in its folder, and notes."""
    missing, notes, records, lines = [], [], [], 0
    try:
        records, lines = RunFolder(path).read_metrics(skip=True)
    except OSError as error:
        missing.append(f"metrics.jsonl cannot be read: {error.strerror}.")
    if state == "running" and not records:
        notes.append("It has just started: there are no curves yet.")
    elif state != "waiting" and not lines and not missing:
        missing.append("There is no metrics.jsonl, or it is empty, so there are no curves.")
    bad = lines - len(records) - (state == "running")  # the last may be half-written
    if bad > 0:
        missing.append(f"Of {lines} lines of metrics.jsonl {bad} are damaged and left out.")
    result = path / "result.json"
    if result.exists() and not isinstance(_read_json(result), dict):
        missing.append("result.json is damaged.")
    return records, missing, notes


def _read_json(path: Path) -> Any:
    """Return the content of a JSON file, or None if it cannot be read."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _metrics(records: list[Record]) -> dict[str, list[float | None]]:
    """Return columns of numbers by name, averaged to at most `POINTS` points."""
    count = min(POINTS, len(records))
    edges = np.linspace(0, len(records), count + 1).astype(int)
    parts = [records[a:b] for a, b in itertools.pairwise(edges)]
    columns: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(name for record in records for name in record):
        if name in ("step", "frames", "episode", "episodes"):
            found = [status.number(part[-1].get(name)) for part in parts]
        elif name == "returns":
            points = map(summary.points, parts)
            name, found = "return", [_mean(earned for _, earned in part) for part in points]
        else:
            found = [_mean([status.number(record.get(name)) for record in part]) for part in parts]
        if any(value is not None for value in found):
            columns[name] = found
    return columns


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _curves(found: summary.Curves, statuses: list[RunStatus]) -> list[Page]:
    """Return mean returns over seeds with 95% intervals, for each environment and label."""
    units = {each.config.env: each.config.steps for each in statuses if each.config is not None}
    panels: dict[str, list[Page]] = {}
    for (label, env), runs in found.items():
        records = max(len(run.times) for run in runs)
        times, values = pictures.common(runs, max(2, min(100, records)))
        if not len(times):
            continue
        mean = packed(values.mean(axis=0))
        series = {"label": label, "seeds": len(values), "x": packed(times), "mean": mean}
        if len(values) > 1:
            low, high = statistics.curve_interval(values)
            series |= {"low": packed(low), "high": packed(high)}
        panels.setdefault(env, []).append(series)
    return [
        {"env": env, "unit": "episodes" if units[env] is None else "steps", "series": series}
        for env, series in panels.items()
    ]


def _scaling(statuses: list[RunStatus]) -> list[Page]:
    """Return the time to solve a problem over its size: medians over seeds, and every run."""
    found: dict[str, dict[str, dict[int, list[float | None]]]] = {}
    for each in statuses:
        config, result = each.config, each.result
        if config and result and (size := config.family.size(config.env)) is not None:
            by_size = found.setdefault(config.family.name, {}).setdefault(each.label, {})
            by_size.setdefault(size, []).append(status.number(result.get("solved_at")))
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
        "median": [statistics.median_solved(by_size[size]) for size in sizes],
        "runs": [[size, value] for size in sizes for value in by_size[size] if value is not None],
        "unsolved": sum(value is None for values in by_size.values() for value in values),
    }
