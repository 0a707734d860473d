"""Evaluation of a run's greedy policy."""

import dataclasses

import numpy as np

from surveyor.errors import SurveyorError
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
    human_normalised: float | None = None
    """(mean - random) / (human - random), on the Atari games of the paper."""

    @property
    def mean_return(self) -> float:
        """Mean over episodes."""
        return float(np.mean(self.returns))


def evaluate(run: Run, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Play episodes with the greedy policy of a run.

    **Arguments:**

    - `run`: the run.
    - `episodes`: number of episodes.
    - `seed`: breaks ties, and decides how episodes begin where the environment is random.
    """
    if episodes < 1:
        raise SurveyorError(f"episodes must be at least 1, not {episodes}.")
    played, config = run.runner.play(run.state, episodes, seed), run.config
    ends = config.family.reference(config.env) if played.optimal is None else None
    score = ends and (float(np.mean(played.returns)) - ends[0]) / (ends[1] - ends[0])
    return Evaluation(*played, human_normalised=score)
