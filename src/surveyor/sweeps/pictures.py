"""Pictures of a sweep: learning curves, performance profiles, interquartile means."""

import math
from pathlib import Path

import numpy as np

from surveyor import drawing
from surveyor.sweeps import statistics
from surveyor.sweeps.summary import Curve, Curves, Summary

LETTER = 0.085
"""Approximate width of a letter in a label, in inches."""
SHOWN = len(drawing.COLOURS)
"""Largest number of labels in a picture."""


def curves(found: Curves, labels: list[str], path: Path) -> Path:
    """Draw mean returns with 95% intervals, one panel for each environment; return `path`."""
    envs = list(dict.fromkeys(env for label, env in found if label in labels))
    columns = min(5, len(envs))
    rows = math.ceil(len(envs) / columns)
    longest = LETTER * max(map(len, labels)) + 0.6
    width = max(3.3 * columns, min(longest, 12))
    figure = drawing.new_figure(width, 3.0 * rows + 0.2 * len(labels))
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for axes, env in zip(grid, envs, strict=False):
        for label, colour in zip(labels, drawing.COLOURS, strict=False):
            if (label, env) in found:
                times, values = common(found[label, env])
                axes.plot(times, np.nanmean(values, axis=0), color=colour, lw=1.3, label=label)
                if len(values) > 1:
                    low, high = statistics.curve_interval(values)
                    axes.fill_between(times, low, high, color=colour, alpha=0.18, lw=0)
        axes.set_title(env, fontsize=10)
        drawing.open_frame(axes)
        axes.ticklabel_format(axis="x", scilimits=(-4, 5))
    for axes in figure.axes[len(envs) :]:
        axes.set_visible(False)
    figure.supxlabel("steps (episodes on trees and chains)", fontsize=9)
    figure.axes[0].set_ylabel("return")
    handles = {}
    for axes in figure.axes:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper center", frameon=False,
        fontsize=9, ncols=max(1, min(6, len(handles), int(width / longest))),
    )  # fmt: skip
    return drawing.save(figure, path)


def common(runs: list[Curve], points: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return common times and smoothed returns of the curves of one label, as runs × times.

    A run that ended early, because its problem was solved, keeps its last return. Runs that have
    not ended are left out if others have, since the curve would otherwise end with them.
    """
    ended = [run for run in runs if run.ended]
    runs = ended or runs
    end = (max if ended else min)(float(run.times[-1]) for run in runs)
    times = np.linspace(end / points, end, points)
    half = max(0.03 * end / 2, end / points)  # a point is the mean over 3% of the curve
    values = np.full((len(runs), points), np.nan)
    for row, run in zip(values, runs, strict=True):
        for i, time in enumerate(times):
            near = np.abs(run.times - min(time, run.times[-1])) <= half
            if near.any():
                row[i] = run.returns[near].mean()
    known = ~np.any(np.isnan(values), axis=0)
    return times[known], values[:, known]


def profiles(summary: Summary, labels: list[str], path: Path) -> Path | None:
    """Draw performance profiles, and interquartile means with 95% intervals.

    Return the path, or None if the labels have no environment in common.
    """
    chosen = {label: summary.normalised[label] for label in labels if summary.normalised}
    if not chosen:
        return None
    width, height = LETTER * max(map(len, chosen)), 1.5 + 0.3 * len(chosen)
    figure = drawing.new_figure(8 + min(6, width), max(3.6, height))
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    everything = np.concatenate([scores.ravel() for scores in chosen.values()])
    levels = np.linspace(min(0.0, everything.min()), max(1.0, 1.05 * everything.max()), 200)
    for number, (label, scores) in enumerate(chosen.items()):
        colour = drawing.COLOURS[number]
        left.plot(levels, statistics.profile(scores, levels), color=colour, label=label)
        value, (low, high) = summary.iqm(label)
        right.barh(label, high - low, left=low, height=0.6, color=colour, alpha=0.4)
        if scores.shape[1] > 1:  # one seed has no interval
            low, high = statistics.profile_interval(scores, levels)
            left.fill_between(levels, low, high, color=colour, alpha=0.15, lw=0)
        right.plot([value, value], [number - 0.3, number + 0.3], color=colour, lw=2)
    left.set_xlabel("normalised score τ")
    left.set_ylabel("share of runs above τ")
    right.invert_yaxis()
    for name, colour in zip(right.get_yticklabels(), drawing.COLOURS, strict=False):
        name.set_color(colour)  # the labels serve as the legend
    right.set_xlabel("interquartile mean, 95%")
    for axes in (left, right):
        drawing.open_frame(axes)
    figure.suptitle(f"Normalised: {summary.scale}", fontsize=9)
    return drawing.save(figure, path)
