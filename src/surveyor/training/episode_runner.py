"""The runner of environments that are learnt by episodes."""

import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree

from surveyor.agents.base import Agent
from surveyor.envs.base import Environment, Params
from surveyor.training import beliefs, episodes
from surveyor.training.episodes import Interval, Loop, optimal
from surveyor.training.runner import Chunk, Played, Record, Runner, Task, to_number
from surveyor.types import EnvSpec

CHUNK_SECONDS = 0.5
"""Target duration of a call of the compiled program, between which Python can stop the run."""


class EpisodeRunner(Runner):
    """Learning by episodes in one compiled program."""

    unit = "episode"
    threaded_snapshots = True

    def __init__(self, task: Task, env: Environment):
        super().__init__(task)
        self.env = env

    @property
    def every(self) -> int:
        return episodes.TEST_EVERY

    @property
    def spec(self) -> EnvSpec:
        return self.env.spec

    def start(self) -> Loop:
        key = episodes.run_keys(self.task.seed)[0]
        return episodes.start(self.task.agent, self.env, key)

    def finished(self, loop: Loop) -> bool:
        solved = int(loop.solved_at) >= 0
        spent = int(loop.episode) >= self.task.budget
        return spent or (solved and self.task.stop_when_solved)

    def chunks(self, loop: Loop) -> Iterator[Chunk]:
        task = self.task
        params, key = self.env.params(task.seed), episodes.run_keys(task.seed)[1]
        program = _program(task.agent, self.env, task.stop_when_solved)
        wanted = 1
        while not self.finished(loop):
            intervals = wanted
            if self.pauses is not None:
                left = self.pauses(int(loop.episode)) - int(loop.episode)
                intervals = min(wanted, math.ceil(left / self.every))
            began = time.perf_counter()
            loop, records, done = jax.block_until_ready(
                program(loop, params, key, np.int32(task.budget), np.int32(intervals))
            )
            took = time.perf_counter() - began
            yield Chunk(loop, _to_records(records, int(done)), took)
            if intervals == wanted:
                grow = min(4.0, CHUNK_SECONDS / max(took, 1e-6))
                wanted = min(episodes.CHUNK, max(1, int(intervals * grow)))

    def result(self, loop: Loop) -> Record:
        return {
            "solved_at": _none_if_negative(loop.solved_at),
            "first_success": _none_if_negative(loop.first_success),
            "episodes": int(loop.episode),
            "gradient_steps": int(loop.gradient_steps),
        }

    def agent_state(self, loop: Loop) -> PyTree:
        return loop.agent_state

    def play(self, agent_state: PyTree, episodes: int, seed: int) -> Played:
        params = self.env.params(self.task.seed)
        keys = jax.random.split(jax.random.key(seed), episodes)
        totals, lengths = _play(self.task.agent, self.env, params, agent_state, keys)
        best = np.mean(optimal(self.env, totals))
        returns, spans = [float(x) for x in totals], [int(x) for x in lengths]
        return Played(returns, spans, self.env.optimal_return, float(best))

    def snapshot_inputs(self, loop: Loop) -> PyTree:
        """Return the agent's state and the visits of every state."""
        return loop.agent_state, loop.visits

    def snapshot(self, inputs: PyTree, at: int) -> dict[str, Array] | None:
        """Return the belief about every state on the environment's map."""
        program = beliefs.map_program(self.task.agent, self.env)
        if program is None:
            return None
        key = jax.random.fold_in(jax.random.key(self.task.seed), at)
        return program(*inputs, self.env.params(self.task.seed), key)


@functools.lru_cache(maxsize=8)
def _program(agent: Agent, env: Environment, stop_when_solved: bool) -> Callable[..., Any]:
    """Return the compiled program, kept for the next seed of the same problem."""
    loop = jax.eval_shape(lambda: episodes.start(agent, env, jax.random.key(0)))
    params = env.default_params
    return episodes.compile_chunk(agent, env, loop, params, stop_when_solved=stop_when_solved)


@eqx.filter_jit
def _play(
    agent: Agent, env: Environment, params: Params, agent_state: PyTree, keys: Array
) -> tuple[Array, Array]:
    def one(key):
        index = agent.greedy(agent_state)
        record = episodes.rollout(agent, env, params, agent_state, index, key)
        return record.total, record.length

    return jax.lax.map(one, keys)


def _to_records(intervals: Interval, count: int) -> list[Record]:
    stacked = jax.tree.map(np.asarray, intervals)
    return [_to_record(jax.tree.map(lambda x, i=i: x[i], stacked)) for i in range(count)]


def _to_record(interval: Interval) -> Record:
    count = int(np.sum(~np.isnan(interval.returns)))
    return {
        "episode": int(interval.episode),
        "returns": [to_number(x) for x in interval.returns[:count]],
        "lengths": [int(x) for x in interval.lengths[:count]],
        "test_return": to_number(interval.test_return),
        **{name: to_number(value) for name, value in interval.metrics.items()},
    }


def _none_if_negative(value: Any) -> int | None:
    return int(value) if int(value) >= 0 else None
