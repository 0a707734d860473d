"""What a page shows, read from run folders: plain data, and what is missing where."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import agents, envs, statistics
from surveyor.errors import SurveyorError
from surveyor.report.packing import image_of, packed, picture
from surveyor.sweeps import status, summary
from surveyor.sweeps.pictures import common
from surveyor.sweeps.status import Standing
from surveyor.training import beliefs, problems, storage
from surveyor.training.config import Config, versions
from surveyor.training.folder import Record, RunFolder

POINTS = 240
"""Records of a run that are shown, evenly over all."""
BELIEF_RUNS = 4
"""A page of more runs than this shows no beliefs; each run's own page does."""
RUN_FILES = ("config.json", "metrics.jsonl", "result.json", "checkpoint")

Page = dict[str, Any]


def collect(path: str | Path, *, episodes: bool = True, live: bool = False) -> Page:
    """Everything about a run, or about the runs in a folder.

    With `episodes`, an image environment's run is played for one greedy episode, if there is only
    one run.
    """
    path = Path(path)
    if not path.is_dir():
        raise SurveyorError(f"There is no folder '{path}'.")
    single = any((path / name).exists() for name in RUN_FILES)
    folder = path.resolve().parent if single else path
    where = storage.at(folder)
    if single:
        standings = [status.stand(folder, path.resolve().name, None, where)]
    else:
        standings = status.survey(where)
    records = {each.name: RunFolder(folder / each.name).metrics() for each in standings}
    runs = [_run(folder, each, records[each.name], single) for each in standings]
    _settings(runs, standings)
    for run, standing in zip(runs, standings, strict=True):
        _add_beliefs(run, folder / standing.name, standing, few=len(runs) <= BELIEF_RUNS)
    if len(runs) == 1 and episodes:
        _add_episode(runs[0], folder / standings[0].name, standings[0])
    return {
        "title": path.resolve().name,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "version": versions()["surveyor"],
        "live": live,
        "runs": runs,
        "curves": [] if single else _curves(standings, records),
        "scaling": [] if single else _scaling(standings),
    }


def _run(folder: Path, standing: Standing, records: list[Record], single: bool) -> Page:
    """One row of the table, and what is behind it."""
    config, result = standing.config, standing.result or {}
    path, missing = folder / standing.name, []
    if standing.state != "waiting":
        if not (path / "metrics.jsonl").exists():
            missing.append("There is no metrics.jsonl, so there are no curves.")
        elif len(records) < len((path / "metrics.jsonl").read_bytes().splitlines()):
            missing.append("The end of metrics.jsonl is damaged; what comes before it is shown.")
    return {
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
        "config": None if config is None else config.to_json(),
        "link": "." if single else standing.name,
        "metrics": _metrics(records),
        "missing": missing,
        "notes": [],
    }


def _metrics(records: list[Record]) -> dict[str, list[float | None]]:
    """Columns of numbers, by the names that the records have for them."""
    step = max(1, -(-len(records) // POINTS))
    some = records[step - 1 :: step] or records[-1:]
    names = dict.fromkeys(name for record in some for name in record)
    columns: dict[str, list[float | None]] = {}
    for name in names:
        values = [record.get(name) for record in some]
        if name == "returns":
            name, values = "return", [(summary.point(record) or (0, None))[1] for record in some]
        found = [status.number(value) for value in values]
        if any(value is not None for value in found):
            columns[name] = found
    return columns


def _settings(runs: list[Page], standings: list[Standing]) -> None:
    """What sets a run apart from the others of its agent in environments of its kind."""
    kinds: dict[Any, list[tuple[Page, dict[str, Any]]]] = {}
    for run, config in zip(runs, (each.config for each in standings), strict=True):
        run["settings"] = ""
        if config is not None:
            kind = type(config.agent), problems.family(config.env)
            kinds.setdefault(kind, []).append((run, dataclasses.asdict(config.agent)))
    for every in kinds.values():
        first = every[0][1]
        apart = [name for name in first if any(mine[name] != first[name] for _, mine in every)]
        for run, mine in every:
            run["settings"] = ", ".join(f"{name} = {mine[name]}" for name in apart)


def _curves(standings: list[Standing], records: dict[str, list[Record]]) -> list[Page]:
    """Mean return over seeds with 95%, for each environment and label."""
    try:
        found = summary.gathered(standings, records)
    except SurveyorError:
        return []
    units = {each.config.env: each.config.steps for each in standings if each.config is not None}
    panels: dict[str, list[Page]] = {}
    for (label, env), runs in found.items():
        times, values = common(runs, 100)
        if not len(times):
            continue
        series = {"label": label, "seeds": len(runs), "x": packed(times)}
        series["mean"] = packed(values.mean(axis=0))
        if len(runs) > 1:
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
        if family not in envs.FAMILIES:
            continue
        solved = status.number(each.result.get("solved_at"))
        by_size = found.setdefault(family, {}).setdefault(each.label, {})
        by_size.setdefault(int(size), []).append(solved)
    panels = []
    for family, labels in found.items():
        if len({size for by_size in labels.values() for size in by_size}) < 2:
            continue
        series = []
        for label, by_size in labels.items():
            sizes = sorted(by_size)
            medians = [_median(by_size[size]) for size in sizes]
            runs = [[size, value] for size in sizes for value in by_size[size] if value is not None]
            unsolved = sum(value is None for values in by_size.values() for value in values)
            series.append({"label": label, "sizes": sizes, "median": medians, "runs": runs,
                           "unsolved": unsolved})  # fmt: skip
        panels.append({"family": family, "series": series})
    return panels


def _median(values: list[float | None]) -> float | None:
    """Unsolved runs count as later than any solved one."""
    value = float(np.median([np.inf if value is None else value for value in values]))
    return value if np.isfinite(value) else None


def _add_beliefs(run: Page, path: Path, standing: Standing, *, few: bool) -> None:
    folder, config = RunFolder(path), standing.config
    if config is None:
        return
    if not folder.belief_times():
        run["notes"].append(
            "What the agent believed was not written down; `surveyor train` does that, and "
            "`surveyor.train(..., beliefs=True)`."
        )
        return
    if not few:
        run["notes"].append("Its own report shows what the agent believed: surveyor report RUN.")
        return
    looks = []
    for at in folder.belief_times():
        try:
            looks.append((at, folder.belief(at)))
        except Exception:  # whatever a damaged archive makes its reader say
            run["missing"].append(f"What the agent believed at {at} cannot be read.")
    try:
        if problems.family(config.env) in envs.FAMILIES:
            run["beliefs"] = _on_a_map(config, looks)
        else:
            run["beliefs"] = _of_observations(folder.belief(beliefs.OBSERVED)["obs"], looks)
    except Exception as error:
        run["missing"].append(f"What the agent believed cannot be shown ({error}).")


def _on_a_map(config: Config, looks: list[tuple[int, dict[str, np.ndarray]]]) -> Page:
    """On the tree and the chain, where states have a place."""
    env = envs.named(config.env)
    layout = env.layout(beliefs.SIDE)
    if layout is None:
        raise SurveyorError(f"{config.env} has no picture")
    return {
        "kind": "grid" if layout.rows.any() else "line",
        "moves": list(layout.moves),
        "rows": packed(layout.rows),
        "columns": packed(layout.columns),
        "size": env.horizon,
        "looks": [
            {
                "at": at,
                **{name: packed(found[name]) for name in ("visits", "mean", "std", "probability")},
                "paths": [_walk(env, path[path >= 0]) for path in found["paths"]],
                "joint": float(found["joint"]),
                "log10_factorised": float(found["log10_factorised"]),
                "correlation": packed(np.rint(100.0 * found["correlation"]).astype(np.int8)),
            }
            for at, found in looks
        ],
    }


def _walk(env: envs.Environment, states: np.ndarray) -> Page:
    rows, columns = env.place(states)
    return {"rows": rows.tolist(), "columns": columns.tolist()}


def _of_observations(obs: np.ndarray, looks: list[tuple[int, dict[str, np.ndarray]]]) -> Page:
    """Everywhere else: a few observations."""
    images = [image_of(one) for one in obs]
    said = [np.array2string(one, precision=3, threshold=12) for one in obs]
    return {
        "kind": "observations",
        "pictures": [None if image is None else picture(image) for image in images],
        "texts": [text if image is None else "" for text, image in zip(said, images, strict=True)],
        "at": [at for at, _ in looks],
        **{
            name: packed(np.stack([found[name] for _, found in looks]))
            for name in ("mean", "std", "probability")
        },
    }


def _add_episode(run: Page, path: Path, standing: Standing) -> None:
    """Play one, where observations are images and there is a checkpoint to play with."""
    config = standing.config
    if config is None or problems.family(config.env) in envs.FAMILIES:
        return
    from surveyor.report.episode import watched
    from surveyor.training.run import Run

    try:
        opened = Run.open(path)
        try:
            if len(opened.runner.spec.shape) == 3:
                run["episode"] = watched(opened)
        finally:
            opened.runner.close()
    except Exception as error:  # a damaged checkpoint, a package that is not installed
        run["missing"].append(f"No episode could be played: {error}")
