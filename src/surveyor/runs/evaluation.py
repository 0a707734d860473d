"""Evaluation of a run's greedy policy; `callbacks.Evaluate` evaluates during training."""

import dataclasses
from typing import NamedTuple

import numpy as np

from surveyor.errors import require
from surveyor.runs.run import Run


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Returns of greedy episodes, on the environment that the run was trained on."""

    returns: list[float]
    lengths: list[int]
    optimal_return: float | None = None
    """The best return there is, where it is known."""
    optimal: float | None = None
    """Share of episodes with that return."""
    normalised: float | None = None
    """Mean return on the scale of the environment's family, such as 0 for random play and 1 for a
    human on Atari; None if there is no scale."""

    @property
    def mean_return(self) -> float:
        """Mean over episodes."""
        return float(np.mean(self.returns))


def evaluate(run: Run, episodes: int = 10, seed: int = 0, *, sampled: bool = False) -> Evaluation:
    """Play episodes with the greedy policy of a run.

    **Arguments:**

    - `run`: the run.
    - `episodes`: number of episodes.
    - `seed`: breaks ties, and decides how episodes begin where the environment is random.
    - `sampled`: act on a sample of the belief in each episode, as in training.
    """
    require(episodes >= 1, f"episodes must be at least 1, not {episodes}.")
    played = run.runner.play(run.state, episodes, seed, sampled=sampled)
    config = run.config
    ends = config.family.reference(config.env) if played.optimal is None else None
    score = ends and (float(np.mean(played.returns)) - ends[0]) / (ends[1] - ends[0])
    return Evaluation(*played, normalised=score)


class EvaluationPlan(NamedTuple):
    """Number of the evaluations of a run, and of the episodes in each."""

    times: int
    """Evaluations per run, spaced evenly over its budget; the last is at the end."""
    episodes: int
