"""Pictures. Needs the `plots` extra: pip install "surveyor[plots]"."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.errors import SurveyorError
from surveyor.training.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY = "#1f5fa8", "#e07b1a", "#8a8a8a"


def require_matplotlib() -> None:
    """Say what to install, where Matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SurveyorError('Pictures need Matplotlib: pip install "surveyor[plots]".')


def learning(run: Run, path: str | Path) -> Path:
    """How a run learnt: depth reached in every episode, returns of the greedy tests."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.4])
    _depth(above, run)
    _tests(below, run)
    for axes in (above, below):
        _events(axes, run)
        axes.spines[["top", "right"]].set_visible(False)
    above.legend(loc="lower right", frameon=False)
    figure.suptitle(f"{run.config.env}, {type(run.agent).__name__}, seed {run.config.seed}")
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise SurveyorError(f"The picture '{path}' cannot be written: {error}.") from None
    return path


def _depth(axes: "Axes", run: Run) -> None:
    env, _ = run.env
    lengths = np.concatenate([record["lengths"] for record in run.metrics])
    returns = np.concatenate([record["returns"] for record in run.metrics])
    episodes = np.arange(1, len(lengths) + 1)
    if np.ptp(lengths):
        values, label = lengths, "steps in the episode"
        axes.plot(
            episodes, np.maximum.accumulate(lengths), color=GREY, lw=1, label="deepest so far"
        )
        axes.axhline(env.horizon, color=GREY, lw=0.8, ls=":")
    else:  # every episode is as long as the next: show what it earned
        values, label = returns, "return of the episode"
    axes.scatter(episodes, values, s=7, color=BLUE, alpha=0.6, linewidths=0, label="training")
    axes.set_ylabel(label)


def _tests(axes: "Axes", run: Run) -> None:
    tests = [record for record in run.metrics if record["test_return"] is not None]
    axes.step(
        [record["episode"] for record in tests],
        [record["test_return"] for record in tests],
        where="post",
        color=BLUE,
    )
    axes.axhline(run.env[0].optimal_return, color=GREY, lw=0.8, ls=":")
    axes.set_ylabel("return of the\ngreedy policy")
    axes.set_xlabel("training episode")


def _events(axes: "Axes", run: Run) -> None:
    if run.first_success is not None:
        label = f"first success: {run.first_success}"
        axes.axvline(run.first_success, color=ORANGE, lw=1.2, ls="--", label=label)
    if run.solved_at is not None:
        label = f"optimal from here on: {run.solved_at}"
        axes.axvline(run.solved_at, color=ORANGE, lw=1.8, label=label)
