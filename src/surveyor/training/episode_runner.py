"""The runner of environments that are learnt by episodes."""

import math
import time
from collections.abc import Iterator
from functools import partial

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, PyTree

from surveyor.agents.base import Agent
from surveyor.envs.base import Environment, Params
from surveyor.training import beliefs, episodes
from surveyor.training.episodes import Interval, Loop, optimal
from surveyor.training.runner import (
    CHUNK_SECONDS,
    Chunk,
    Played,
    Record,
    Runner,
    call_once,
    chosen_index,
    to_number,
)


class EpisodeRunner(Runner):
    """Learning by episodes in one compiled program."""

    threaded_snapshots = True
    every = episodes.TEST_EVERY
    env: Environment

    def start(self) -> Loop:
        start = partial(episodes.start, self.agent, self.env)
        return call_once(start, self.init_key) if self.agent.one_start else start(self.init_key)

    def finished(self, loop: Loop) -> bool:
        solved = int(loop.solved_at) >= 0
        spent = int(loop.episode) >= self.task.budget
        return spent or (solved and self.task.stop_when_solved)

    def chunks(self, loop: Loop) -> Iterator[Chunk]:
        task, wanted = self.task, 1
        fixed = self.env.params(task.seed), self.train_key, np.int32(task.budget)
        program = episodes.compile_chunk(self.agent, self.env, task.stop_when_solved)
        while not self.finished(loop):
            left = self.pauses(int(loop.episode)) - int(loop.episode)
            intervals = math.ceil(min(wanted, left / self.every))
            began = time.perf_counter()
            after = program(loop, *fixed, np.int32(intervals))
            loop, records, done = jax.block_until_ready(after)
            took = time.perf_counter() - began
            records = jax.tree.map(np.asarray, records)
            each = [jax.tree.map(lambda x, i=i: x[i], records) for i in range(int(done))]
            yield Chunk(loop, [_to_record(interval) for interval in each], took)
            if intervals == wanted:
                grow = min(4.0, CHUNK_SECONDS / max(took, 1e-6))
                wanted = min(episodes.CHUNK, max(1, int(intervals * grow)))

    def result(self, loop: Loop) -> Record:
        ends = (int(at) for at in (loop.solved_at, loop.first_success))
        solved_at, first_success = (None if at < 0 else at for at in ends)
        return {
            "solved_at": solved_at,
            "first_success": first_success,
            "episodes": int(loop.episode),
            "gradient_steps": int(loop.gradient_steps),
        }

    def play(
        self, agent_state: PyTree, episodes: int, seed: int, *, sampled: bool = False
    ) -> Played:
        params = self.env.params(self.task.seed)
        keys = jax.random.split(jax.random.key(seed), episodes)
        totals, lengths = _play(self.agent, self.env, params, agent_state, keys, sampled)
        best = np.mean(optimal(self.env, totals))
        return Played(totals.tolist(), lengths.tolist(), self.env.optimal_return, float(best))

    def snapshot_inputs(self, loop: Loop) -> PyTree:
        return loop.agent_state, loop.visits

    def snapshot(self, inputs: PyTree, at: int) -> dict[str, Array] | None:
        """Return the belief about every state on the environment's map."""
        program = beliefs.map_program(self.agent, self.env)
        if program is None:
            return None
        key = jax.random.fold_in(jax.random.key(self.task.seed), at)
        return program(*inputs, self.env.params(self.task.seed), key)


@eqx.filter_jit
def _play(
    agent: Agent,
    env: Environment,
    params: Params,
    agent_state: PyTree,
    keys: Array,
    sampled: bool,
) -> tuple[Array, Array]:
    def one(key):
        index = chosen_index(agent, agent_state, jax.random.fold_in(key, 0), sampled)
        record = episodes.rollout(agent, env, params, agent_state, index, key)
        return record.total, record.length

    return jax.lax.map(one, keys)


def _to_record(interval: Interval) -> Record:
    count = int(np.sum(~np.isnan(interval.returns)))
    return {
        "episode": int(interval.episode),
        "returns": [to_number(x) for x in interval.returns[:count]],
        "lengths": [int(x) for x in interval.lengths[:count]],
        "test_return": to_number(interval.test_return),
        **{name: to_number(value) for name, value in interval.metrics.items()},
    }
