"""An agent's beliefs in a report: on a map of states, at observations, or along an episode."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from surveyor.envs.base import Environment
from surveyor.errors import SurveyorError
from surveyor.report.page import image_of, packed, picture
from surveyor.runs import film, recorder
from surveyor.runs.config import Config
from surveyor.runs.folder import Arrays, RunFolder
from surveyor.runs.run import Run
from surveyor.sweeps.status import RunStatus
from surveyor.training import beliefs
from surveyor.training.runner import EnoughError

MAX_RUNS = 4
"""Number of runs up to which a page shows beliefs; each run's own page does too."""
MAX_BYTES = 20_000_000
"""Size of all beliefs on a page with more than one run."""
MAX_STEPS = 3_000
"""Steps after which an episode is cut."""
FRAMES = 240
"""Largest number of frames shown at regular intervals."""
MOMENTS = 6
"""Additional frames where posterior samples disagree most."""
APART = 0.03
"""Smallest distance between such frames, as a share of the episode."""
RANGES = 12
"""Largest number of ranges of observations that are listed."""
BATCH = 32
"""Observations per call of the agent."""
ELSEWHERE = "Its own report shows the agent's beliefs: surveyor report RUN."
NO_SNAPSHOTS = (
    "No beliefs were recorded; `surveyor train` records them, as does "
    "`surveyor.train(..., beliefs=True)`."
)
TOO_SHORT = "No beliefs were recorded: the run ended before its warm-up."
NOT_YET = "No beliefs have been recorded yet."

Page = dict[str, Any]
Snapshots = list[tuple[int, Arrays]]


def add_beliefs(runs: list[Page], statuses: list[RunStatus], folder: Path) -> int:
    """Add beliefs to the data of each run, or a note on why there are none; return their size."""
    total = 0
    for run, status in zip(runs, statuses, strict=True):
        kept = RunFolder(folder / status.name)
        if status.config is None:
            if kept.snapshot_times():
                run["missing"].append("Without its configuration the beliefs cannot be shown.")
        elif not kept.snapshot_times():
            ended = kept.snapshots_enabled and status.state == "done"
            lacking = TOO_SHORT if ended else NO_SNAPSHOTS
            run["notes"].append(NOT_YET if status.state == "running" else lacking)
        elif len(runs) > MAX_RUNS:
            run["notes"].append(ELSEWHERE)
        elif (found := _beliefs(run, kept, status.config)) is not None:
            size = len(json.dumps(found))
            if len(runs) > 1 and total + size > MAX_BYTES:
                run["notes"].append(ELSEWHERE)
            else:
                run["beliefs"], total = found, total + size
    return total


def _beliefs(run: Page, kept: RunFolder, config: Config) -> Page | None:
    snapshots: Snapshots = []
    for at in kept.snapshot_times():
        try:
            snapshots.append((at, recorder.read(kept, at, config)))
        except Exception:  # the reader of a damaged archive may raise anything
            run["missing"].append(f"The beliefs at {at} cannot be read.")
    if not snapshots:
        return None
    try:
        on_map = config.family.shows == "map"
        return _on_a_map(run, config, snapshots) if on_map else _at_observations(kept, snapshots)
    except Exception as error:
        run["missing"].append(f"The beliefs cannot be shown ({error}).")
        return None


def _on_a_map(run: Page, config: Config, snapshots: Snapshots) -> Page:
    """Return beliefs about states that have a place on a map, as on the tree and the chain."""
    env = config.make()
    if not isinstance(env, Environment) or (layout := env.layout(beliefs.SIDE)) is None:
        raise SurveyorError(f"{config.env} has no map")
    shown = []
    for at, found in snapshots:
        try:
            shown.append(_snapshot(env, at, found, len(layout.rows)))
        except (KeyError, TypeError, ValueError):
            run["missing"].append(f"The beliefs at {at} cannot be read.")
    if not shown:
        raise SurveyorError("no snapshot is complete")
    return {
        "kind": "grid" if layout.rows.any() else "line",
        "moves": list(layout.moves),
        "rows": packed(layout.rows),
        "columns": packed(layout.columns),
        "size": env.horizon,
        "steps": beliefs.strided(np.arange(len(layout.path))).tolist(),
        "looks": shown,
    }


def _snapshot(env: Environment, at: int, found: Arrays, states: int) -> Page:
    axes = {"visits": 2, "mean": 2, "std": 2, "probability": 1}
    whole = all(found[name].shape == (states, 2)[:count] for name, count in axes.items())
    if not whole or found["correlation"].ndim != 2:
        raise ValueError("arrays are cut off")
    walks = zip(found["paths"], found["succeeded"], strict=True)
    correlation = np.nan_to_num(found["correlation"].astype(float)).clip(-1, 1)
    return {
        "at": at,
        **{name: packed(found[name]) for name in axes},
        "paths": [_walk(env, path[path >= 0], bool(succeeded)) for path, succeeded in walks],
        "joint": float(found["joint"]),
        "samples": int(found.get("joint_samples", beliefs.SAMPLES)),
        "log10_factorised": float(found["log10_factorised"]),
        "correlation": packed(np.rint(100 * correlation).astype(np.int8)),  # in percent
    }


def _walk(env: Environment, states: np.ndarray, succeeded: bool) -> Page:
    rows, columns = env.place(states)
    return {"rows": rows.tolist(), "columns": columns.tolist(), "succeeded": succeeded}


def _at_observations(kept: RunFolder, snapshots: Snapshots) -> Page:
    """Return beliefs at a few observations."""
    try:
        seen = kept.read_snapshot(recorder.OBSERVED)
        obs, images = seen["obs"], seen.get("images")
    except Exception:  # the reader of a damaged archive may raise anything
        raise SurveyorError("their observations cannot be read") from None
    names = ("mean", "std", "probability")
    return {
        "kind": "observations",
        "pictures": [None] * len(obs) if images is None else [*map(picture, map(image_of, images))],
        "texts": [np.array2string(one, precision=3, threshold=12) for one in obs],
        "scaling": _ranges(snapshots[-1][1]),
        "at": [at for at, _ in snapshots],
        **{name: packed(np.stack([found[name] for _, found in snapshots])) for name in names},
    }


def _ranges(found: Arrays) -> str:
    """Return a sentence about the ranges that observations are scaled by; "" if they are not."""
    if "low" not in found:
        return ""
    pairs = [
        f"{low:.4g} to {high:.4g}" for low, high in zip(found["low"], found["high"], strict=True)
    ]
    more = f" and {len(pairs) - RANGES} more" if len(pairs) > RANGES else ""
    return f"Observations are scaled by the ranges {', '.join(pairs[:RANGES])}{more}."


def add_episode(
    runs: list[Page], statuses: list[RunStatus], folder: Path, episodes: bool, live: bool, env: Any
) -> None:
    """Play a greedy episode if `episodes` and there is a single run on images, with a checkpoint.

    Add a note in place of an episode if `live`; play in `env` if it is not None.
    """
    for run, status in zip(runs, statuses, strict=True):
        shows = "map" if status.config is None else status.config.family.shows
        if shows == "map":
            continue
        known = run.get("beliefs", {}).get("pictures")
        images = shows == "episode" or bool(known and known[0])
        if (live or len(runs) > 1) and images:
            run["notes"].append("Its own report shows an episode: surveyor report RUN.")
        elif len(runs) == 1 and episodes and (images or known is None):
            _play(run, folder / status.name, env)


def _play(run: Page, path: Path, env: Any) -> None:
    if not (path / "checkpoint" / "state.npz").exists():
        run["missing"].append("There is no checkpoint, so no episode could be played.")
        return
    try:
        opened = Run.open(path, env, replay=False)
        with contextlib.closing(opened.runner):
            if opened.runner.spec.picture:
                run["episode"] = _episode(opened)
    except Exception as error:  # a damaged checkpoint, a package that is not installed
        reason = f"No episode could be played: {error}"
        if "There is no environment" in reason:
            reason += " From Python, `surveyor.report.write(path, env=...)` takes it as an object."
        run["missing"].append(reason)


def _episode(run: Run) -> Page:
    """Return frames of an episode with mean and standard deviation of each action's Q value."""
    seen: list[np.ndarray] = []
    taken: list[int] = []
    pictures: list[str] = []

    def see(obs: np.ndarray, paint: Callable[[], np.ndarray], action: int) -> None:
        if len(seen) == MAX_STEPS:
            raise EnoughError
        seen.append(np.array(obs))
        taken.append(action)
        try:
            pictures.append(picture(paint()))
        except Exception:  # it draws nothing: show what the agent sees
            pictures.append(picture(image_of(obs)))

    film.watch(run, 0, see)
    found = _along(run, np.stack(seen))
    dissent = 1 - np.max(found["probability"], axis=1)
    moments = _moments(dissent)
    shown = sorted({*range(0, len(seen), -(-len(seen) // FRAMES)), *moments})
    return {
        "steps": shown,
        "length": len(seen),
        "cut": len(seen) == MAX_STEPS,
        "frames": [pictures[i] for i in shown],
        "taken": [taken[i] for i in shown],
        **{name: packed(values[shown]) for name, values in found.items()},
        "dissent": packed(dissent),
        "moments": moments,
        "actions": found["mean"].shape[1],
    }


def _along(run: Run, obs: np.ndarray) -> Arrays:
    """Return the beliefs at all observations, asked for in batches of one size."""
    parts = []
    for begin in range(0, len(obs), BATCH):
        rows = np.minimum(np.arange(begin, begin + BATCH), len(obs) - 1)
        key = jax.random.key(0)  # equal samples for every frame
        parts.append(beliefs.about(run.agent, run.state, obs[rows], key))
    return {name: np.concatenate([part[name] for part in parts])[: len(obs)] for name in parts[0]}


def _moments(dissent: np.ndarray) -> list[int]:
    """Return the steps of the greatest dissent that are far enough apart."""
    chosen: list[int] = []
    for i in np.argsort(-dissent, kind="stable"):
        if len(chosen) == MOMENTS or dissent[i] == 0:
            break
        if all(abs(int(i) - other) >= APART * len(dissent) for other in chosen):
            chosen.append(int(i))
    return chosen
