"""How well a run's greedy policy does."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import numpy as np

from surveyor.envs.atari import human_normalised
from surveyor.errors import SurveyorError
from surveyor.training import episodes as compiled, functional, host, problems
from surveyor.training.host import HostRunner
from surveyor.runs.run import Run
from surveyor.training.runner import EpisodeRunner, FunctionalRunner

HOST_ENVS = 8
"""Environments that a test plays side by side at the most."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Returns of greedy episodes, on the environment that the run was trained on."""

    returns: list[float]
    lengths: list[int]
    optimal_return: float | None = None
    optimal: float | None = None
    """The share of episodes with the optimal return, where that is known."""
    human_normalised: float | None = None
    """(mean - random) / (human - random), on the Atari games of the paper."""

    @property
    def mean_return(self) -> float:
        """The mean over episodes."""
        return float(np.mean(self.returns))


def evaluate(run: Run, episodes: int = 10, seed: int = 0) -> Evaluation:
    """Play episodes with the greedy policy.

    The seed breaks ties, and decides how episodes begin where the environment is random.
    """
    if episodes < 1:
        raise SurveyorError(f"episodes must be at least 1, not {episodes}.")
    runner = run.runner
    if isinstance(runner, EpisodeRunner):
        return _tabular(run, runner, episodes, seed)
    if isinstance(runner, FunctionalRunner):
        play = eqx.filter_jit(functional.play)
        key = jax.random.key(seed)
        totals, lengths = play(run.agent, runner.env, run.state, key, episodes)
        return Evaluation([float(x) for x in totals], [int(x) for x in lengths])
    assert isinstance(runner, HostRunner)
    envs = runner.make(min(episodes, HOST_ENVS))
    try:
        # Far from the seeds of training, which are small numbers as a rule.
        returns, lengths = host.play(run.agent, run.state, envs, episodes, 10**9 + seed)
    finally:
        envs.close()
    return Evaluation(returns, lengths, human_normalised=_normalised(run, returns))


def _normalised(run: Run, returns: list[float]) -> float | None:
    if problems.family(run.config.env) != "ALE":
        return None
    return human_normalised(problems.game(run.config.env), float(np.mean(returns)))


def _tabular(run: Run, runner: EpisodeRunner, episodes: int, seed: int) -> Evaluation:
    env = runner.env
    params = env.params(run.config.seed)
    play = functools.partial(_play, run.agent, env, params, run.state)
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
