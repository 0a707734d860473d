"""Statistics of few runs on several tasks, after Agarwal et al. (2021), the package rliable.

Scores are arrays of tasks × runs. Tested against rliable's own numbers.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import stats

Scores = Float[np.ndarray, "tasks runs"]
Interval = tuple[float, float]

RESAMPLES = 2000


def iqm(scores: Float[np.ndarray, "..."]) -> float:
    """The interquartile mean: of all runs together, without the best and the worst quarter."""
    return float(stats.trim_mean(scores.ravel(), 0.25))


def mean(scores: Float[np.ndarray, "..."]) -> float:
    """The mean of all runs together."""
    return float(np.mean(scores))


def interval(scores: Scores, statistic: Callable[[np.ndarray], float], seed: int = 0) -> Interval:
    """95% by the stratified bootstrap: runs are drawn with replacement within every task."""
    draws = [statistic(again) for again in _resamples(scores, seed)]
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def profile(scores: Scores, levels: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The performance profile: the share of runs that score above each level."""
    return np.mean(scores[..., None] > levels, axis=(0, 1))


def profile_interval(
    scores: Scores, levels: Float[np.ndarray, " n"], seed: int = 0
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """95% of it, at every level by itself."""
    draws = [profile(again, levels) for again in _resamples(scores, seed)]
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    return low, high


def curve_interval(
    curves: Float[np.ndarray, "runs points"], seed: int = 0
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    """95% of the mean of several learning curves, at every point by itself."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, len(curves), (RESAMPLES, len(curves)))
    low, high = np.quantile(np.nanmean(curves[chosen], axis=1), (0.025, 0.975), axis=0)
    return low, high


def _resamples(scores: Scores, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(RESAMPLES):
        chosen = rng.integers(0, scores.shape[1], scores.shape)
        yield np.take_along_axis(scores, chosen, axis=1)
