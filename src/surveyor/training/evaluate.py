"""How well a run's greedy policy does."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import numpy as np

from surveyor.errors import SurveyorError
from surveyor.training import compiled
from surveyor.training.run import Run


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Returns of greedy episodes, on the environment that the run was trained on."""

    returns: list[float]
    lengths: list[int]
    optimal_return: float
    optimal: float
    """The share of episodes with the optimal return."""

    @property
    def mean_return(self) -> float:
        """The mean over episodes."""
        return float(np.mean(self.returns))


def evaluate(run: Run, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Play episodes with the greedy policy; the seed only breaks ties."""
    if episodes < 1:
        raise SurveyorError(f"episodes must be at least 1, not {episodes}.")
    env, params = run.env
    play = functools.partial(_play, run.agent, env, params, run.loop.agent)
    totals, lengths = play(jax.random.split(jax.random.key(seed), episodes))
    return Evaluation(
        returns=[float(x) for x in totals],
        lengths=[int(x) for x in lengths],
        optimal_return=env.optimal_return,
        optimal=float(np.mean(compiled.optimal(env, totals))),
    )


@eqx.filter_jit
def _play(agent: Any, env: Any, params: Any, state: Any, keys: jax.Array) -> tuple[Any, Any]:
    def one(key):
        record = compiled.rollout(agent, env, params, state, agent.greedy(state), key)
        return record.total, record.length

    return jax.lax.map(one, keys)
