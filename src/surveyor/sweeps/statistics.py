"""Statistics of few runs on some tasks, after Agarwal et al. (2021), the package rliable.

Scores are arrays of tasks × runs. Tests compare them with rliable's own numbers.
"""

import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

Scores = Float[np.ndarray, "tasks runs"]
Values = Float[np.ndarray, " n"]
Interval = tuple[float, float]

RESAMPLES = 2000
"""Draws of a bootstrap."""


def median_solved(times: Iterable[int | float | None]) -> float | None:
    """Return the median time to solve a problem, None if it falls among unsolved runs (None)."""
    ranked = [math.inf if time is None else float(time) for time in times]
    median = statistics.median(ranked) if ranked else math.inf
    return None if math.isinf(median) else median


def iqm(scores: Float[np.ndarray, "..."]) -> float:
    """Return the interquartile mean: the mean of all runs but the best and the worst quarter."""
    ranked = np.sort(scores, axis=None)
    cut = len(ranked) // 4
    return float(np.mean(ranked[cut : len(ranked) - cut]))


def interval(scores: Scores, statistic: Callable[[np.ndarray], float], seed: int = 0) -> Interval:
    """Return a 95% interval by the stratified bootstrap, which resamples runs within each task."""
    low, high = _quantiles([statistic(again) for again in _resamples(scores, seed)])
    return float(low), float(high)


def profile(scores: Scores, levels: Values) -> Values:
    """Return the performance profile: the share of runs that score above each level."""
    return np.mean(scores[..., None] > levels, axis=(0, 1))


def profile_interval(scores: Scores, levels: Values, seed: int = 0) -> tuple[Values, Values]:
    """Return a 95% interval of the performance profile at each level."""
    return _quantiles([profile(again, levels) for again in _resamples(scores, seed)])


def curve_interval(curves: Scores, seed: int = 0) -> tuple[Values, Values]:
    """Return a 95% interval of the mean of learning curves (runs × points) at each point."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(curves), (RESAMPLES, len(curves)))
    return _quantiles(np.nanmean(curves[chosen], axis=1))


def _quantiles(draws: list[Any] | np.ndarray) -> tuple[Any, Any]:
    return tuple(np.quantile(draws, (0.025, 0.975), axis=0))


def _resamples(scores: Scores, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(RESAMPLES):
        chosen = rng.integers(0, scores.shape[1], scores.shape)
        yield np.take_along_axis(scores, chosen, axis=1)
