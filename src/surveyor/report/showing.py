"""What is shown of an agent's belief: on a map of states, of observations, or along an episode."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import envs
from surveyor.errors import SurveyorError
from surveyor.report.packing import image_of, packed, picture
from surveyor.runs.config import Config
from surveyor.runs.folder import Arrays, RunFolder
from surveyor.sweeps.status import Standing
from surveyor.training import beliefs, problems

RUNS = 4
"""A page of more runs than this shows no beliefs; each run's own page does."""
BYTES = 20_000_000
"""Nor does it show those that would make a page of several runs larger than this."""
ELSEWHERE = "Its own report shows what the agent believed: surveyor report RUN."
NOTHING = (
    "Nothing is written down of what the agent believed; `surveyor train` does that, and "
    "`surveyor.train(..., beliefs=True)`."
)

TOO_SHORT = (
    "Nothing is written down of what the agent believed: the run ended before its random steps."
)
SOON = "Nothing is written down yet of what the agent believes."

Page = dict[str, Any]
Looks = list[tuple[int, Arrays]]


def add_beliefs(runs: list[Page], standings: list[Standing], folder: Path) -> int:
    """Give each run what its agent believed, or say why not; returns how much that is."""
    spent = 0
    for run, standing in zip(runs, standings, strict=True):
        kept, config = RunFolder(folder / standing.name), standing.config
        if not kept.snapshot_times():
            if config is not None:
                lacks = (
                    TOO_SHORT if kept.snapshots_enabled and standing.state == "done" else NOTHING
                )
                run["notes"].append(SOON if standing.state == "running" else lacks)
        elif config is None:
            run["missing"].append(
                "Without its configuration what the agent believed cannot be shown."
            )
        elif len(runs) > RUNS:
            run["notes"].append(ELSEWHERE)
        else:
            found = _beliefs(run, kept, config)
            size = len(json.dumps(found))
            if found is not None and (len(runs) == 1 or spent + size <= BYTES):
                run["beliefs"] = found
                spent += size
            elif found is not None:
                run["notes"].append(ELSEWHERE)
    return spent


def _beliefs(run: Page, kept: RunFolder, config: Config) -> Page | None:
    looks: Looks = []
    for at in kept.snapshot_times():
        try:
            looks.append((at, kept.read_snapshot(at)))
        except Exception:  # whatever a damaged archive makes its reader say
            run["missing"].append(f"What the agent believed at {at} cannot be read.")
    if not looks:
        return None
    try:
        if problems.family(config.env) in envs.FAMILIES:
            return _on_a_map(run, config, looks)
        return _of_observations(_observations(kept), looks)
    except Exception as error:
        run["missing"].append(f"What the agent believed cannot be shown ({error}).")
        return None


def _observations(kept: RunFolder) -> np.ndarray:
    try:
        return kept.read_snapshot(beliefs.OBSERVED)["obs"]
    except Exception:  # whatever a damaged archive makes its reader say
        raise SurveyorError("the observations that it is about cannot be read") from None


def _on_a_map(run: Page, config: Config, looks: Looks) -> Page:
    """On the tree and the chain, where states have a place."""
    env = envs.named(config.env)
    layout = env.layout(beliefs.SIDE)
    if layout is None:
        raise SurveyorError(f"{config.env} has no picture")
    shown = []
    for at, found in looks:
        try:
            shown.append(_look(env, at, found, len(layout.rows)))
        except (KeyError, TypeError, ValueError):
            run["missing"].append(f"What the agent believed at {at} cannot be read.")
    if not shown:
        raise SurveyorError("no look is whole")
    return {
        "kind": "grid" if layout.rows.any() else "line",
        "moves": list(layout.moves),
        "rows": packed(layout.rows),
        "columns": packed(layout.columns),
        "size": env.horizon,
        "steps": beliefs.strided(np.arange(len(layout.path))).tolist(),
        "looks": shown,
    }


def _look(env: envs.Environment, at: int, found: Arrays, states: int) -> Page:
    for name, shape in {"visits": 2, "mean": 2, "std": 2, "probability": 1}.items():
        if found[name].shape != (states, 2)[:shape]:
            raise ValueError(f"{name} is cut off")
    if found["correlation"].ndim != 2:
        raise ValueError("correlation is cut off")
    return {
        "at": at,
        **{name: packed(found[name]) for name in ("visits", "mean", "std", "probability")},
        "paths": [
            _walk(env, path[path >= 0], bool(succeeded))
            for path, succeeded in zip(found["paths"], found["succeeded"], strict=True)
        ],
        "joint": float(found["joint"]),
        "samples": int(found.get("joint_samples", beliefs.SAMPLES)),
        "log10_factorised": float(found["log10_factorised"]),
        "correlation": packed(_percent(found["correlation"])),
    }


def _percent(correlation: np.ndarray) -> np.ndarray:
    return np.rint(100 * np.nan_to_num(correlation.astype(float)).clip(-1, 1)).astype(np.int8)


def _walk(env: envs.Environment, states: np.ndarray, succeeded: bool) -> Page:
    rows, columns = env.place(states)
    return {"rows": rows.tolist(), "columns": columns.tolist(), "succeeded": succeeded}


def _of_observations(obs: np.ndarray, looks: Looks) -> Page:
    """Everywhere else: a few observations."""
    images = [image_of(one) if one.ndim == 3 else None for one in obs]
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


def add_episode(
    runs: list[Page],
    standings: list[Standing],
    folder: Path,
    *,
    episodes: bool,
    live: bool,
    env: Any = None,
) -> None:
    """Play one, where observations are images and there is a checkpoint to play with."""
    for run, standing in zip(runs, standings, strict=True):
        config = standing.config
        known = run.get("beliefs", {}).get("pictures")
        if config is None or problems.family(config.env) in envs.FAMILIES:
            continue
        images = problems.family(config.env) in ("MinAtar", "ALE") or bool(known and known[0])
        if live or len(runs) > 1:
            if images:
                run["notes"].append("Its own report shows an episode: surveyor report RUN.")
        elif episodes and (images or known is None):
            _play(run, folder / standing.name, env)


def _play(run: Page, path: Path, env: Any) -> None:
    from surveyor.report.episode import watched
    from surveyor.runs.run import Run

    if not (path / "checkpoint" / "state.npz").exists():
        run["missing"].append("There is no checkpoint, so no episode could be played.")
        return
    try:
        opened = Run.open(path, env, replay=False)
        try:
            if len(opened.runner.spec.shape) == 3:
                run["episode"] = watched(opened)
        finally:
            opened.runner.close()
    except Exception as error:  # a damaged checkpoint, a package that is not installed
        said = f"No episode could be played: {error}"
        if "There is no environment" in said:
            said += " From Python, `surveyor.report.write(path, env=...)` takes it as an object."
        run["missing"].append(said)
