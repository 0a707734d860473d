"""The picture of how one run learnt."""

from pathlib import Path

import numpy as np

from surveyor import agents, drawing
from surveyor.drawing import BLUE, GREY, ORANGE, Axes
from surveyor.runs.run import Run

LABELS = {"posterior_trace": "trace of Σ", "q_loss": "Q loss", "length": "episode length"}
"""Metrics for the lower panel of a run by steps; the first that the run has is drawn."""


def learning(run: Run, path: str | Path) -> Path:
    """Draw how a run with at least one metrics record learnt, and return the picture's path.

    Records with the returns of all episodes are drawn by episode, above the greedy evaluations;
    others as mean returns by step, above a measure of the agent's uncertainty.
    """
    drawing.require_matplotlib()
    figure = drawing.new_figure(8.0, 5.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.4])
    if "returns" in run.latest:
        _draw_episodes(above, run)
        _draw_evaluations(below, run)
        for at, width, style, label in (
            (run.first_success, 1.2, "--", "first success"),
            (run.solved_at, 1.8, "-", "optimal from here on"),
        ):
            for axes in (above, below) if at is not None else ():
                axes.axvline(at, color=ORANGE, lw=width, ls=style, label=f"{label}: {at}")
        above.legend(loc="lower right", frameon=False)
    else:
        _draw_by_step(above, run, "return", "return of training episodes")
        name = next((name for name in LABELS if name in run.latest), "length")
        _draw_by_step(below, run, name, LABELS[name])
        below.set_xlabel("steps")
    for axes in (above, below):
        drawing.open_frame(axes)
    title = agents.entry_of(run.config.agent).title
    figure.suptitle(f"{run.config.env}, {title}, seed {run.config.seed}")
    return drawing.save(figure, path)


def _draw_by_step(axes: Axes, run: Run, name: str, label: str) -> None:
    points = [(r["step"], r[name]) for r in run.metrics if r.get(name) is not None]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, color=BLUE, lw=1.2)
    axes.set_ylabel(label)


def _draw_episodes(axes: Axes, run: Run) -> None:
    """Draw the length of every episode, or its return where all are equally long."""
    values = np.concatenate([record["lengths"] for record in run.metrics])
    episodes, label = np.arange(1, len(values) + 1), "steps in the episode"
    if np.ptp(values):
        deepest = np.maximum.accumulate(values)
        axes.plot(episodes, deepest, color=GREY, lw=1, label="deepest so far")
        axes.axhline(run.runner.spec.horizon, color=GREY, lw=0.8, ls=":")
    else:
        values = np.concatenate([record["returns"] for record in run.metrics])
        label = "return of the episode"
    axes.scatter(episodes, values, s=7, color=BLUE, alpha=0.6, linewidths=0, label="training")
    axes.set_ylabel(label)


def _draw_evaluations(axes: Axes, run: Run) -> None:
    found = [(r["episode"], r["test_return"]) for r in run.metrics if r["test_return"] is not None]
    episodes, returns = np.array(found, float).reshape(-1, 2).T
    axes.step(episodes, returns, where="post", color=BLUE)
    reference = run.config.family.reference(run.config.env)
    if reference is not None:
        axes.axhline(reference[1], color=GREY, lw=0.8, ls=":")
    axes.set_ylabel("return of the\ngreedy policy")
    axes.set_xlabel("training episode")
