"""Learning by steps from functional environments, such as MinAtar: loop and runner.

Acting, the environments, the replay and learning are one XLA program; Python has its turn once per
record.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.envs.functional import Functional, coloured
from surveyor.envs.reading import check_masks, check_observations, check_rewards
from surveyor.replay.steps import StepReplay
from surveyor.training import steps
from surveyor.training.episodes import COMPILER_OPTIONS
from surveyor.training.runner import (
    Chunk,
    Played,
    See,
    StepRunner,
    Task,
    call_once,
    chosen_index,
)
from surveyor.training.steps import Learning, Round
from surveyor.types import PRNG, HostArrays, Metrics, Transition

DIAGNOSED = 32
"""Past observations that the logged diagnostics are computed on."""


class StepLoop(eqx.Module):
    """Everything that changes while training, which a checkpoint holds."""

    learning: Learning
    replay: StepReplay
    env: PyTree
    obs: Shaped[HostArrays, "envs ..."]

    @property
    def agent_state(self) -> PyTree:
        """State of the agent."""
        return self.learning.agent_state


def start(agent: Agent, env: Functional, key: PRNG) -> StepLoop:
    """Return the loop before the first step."""
    agent_key, env_key = jax.random.split(key)
    learning = steps.start(agent, env.spec, agent_key)
    obs, state = jax.vmap(env.reset)(jax.random.split(env_key, agent.schedule.envs))
    return StepLoop(learning, StepReplay.create(env.spec, agent.schedule), state, obs)


def act(agent: Agent, env: Functional, key: PRNG, loop: StepLoop) -> StepLoop:
    """Take one step of every environment."""
    key = jax.random.fold_in(jax.random.fold_in(key, 0), loop.learning.step)
    act_key, env_key, index_key = jax.random.split(key, 3)
    legal = loop.env.legal if env.spec.masked else None
    action = steps.act(agent, loop.learning, env.spec, loop.obs, act_key, legal)
    keys = jax.random.split(env_key, agent.schedule.envs)
    obs, state, reward, terminated, truncated, final = jax.vmap(env.step)(keys, loop.env, action)
    ended = terminated | truncated
    after = state.final_legal if env.spec.masked else None
    transitions = Transition(loop.obs, action, reward, final, terminated, next_legal=after)
    stepped = jnp.ones_like(ended)
    learning = steps.observe(agent, loop.learning, transitions, reward, ended, index_key, stepped)
    return StepLoop(learning, loop.replay.add(transitions, ended), state, obs)


def update(agent: Agent, key: PRNG, loop: StepLoop) -> StepLoop:
    """Take one gradient step."""
    key = jax.random.fold_in(jax.random.fold_in(key, 1), loop.learning.gradient_steps)
    draw_key, learn_key = jax.random.split(key)
    batch = loop.replay.sample(jax.random.uniform(draw_key, (agent.schedule.batch_size,)))
    learning, errors = steps.update(agent, loop.learning, batch, learn_key)
    replay = loop.replay.update_priorities(batch.number, errors)
    return replace(loop, learning=learning, replay=replay)


def train(
    agent: Agent,
    env: Functional,
    loop: StepLoop,
    key: PRNG,
    rounds: Int[Array, ""],
    recorded: Bool[Array, ""],
) -> tuple[StepLoop, Metrics]:
    """Act and learn for this many rounds; return the metrics too, reset if they are `recorded`."""
    each, warmup = Round.of(agent), agent.schedule.warmup

    def body(_, loop):
        loop = jax.lax.fori_loop(0, each.acts, lambda _, loop: act(agent, env, key, loop), loop)
        ready = (loop.learning.step > warmup) & (loop.replay.count > 0)
        count = jnp.where(ready, each.updates, 0)
        return jax.lax.fori_loop(0, count, lambda _, loop: update(agent, key, loop), loop)

    loop = jax.lax.fori_loop(0, rounds, body, loop)
    u = jax.random.uniform(jax.random.fold_in(key, 2), (DIAGNOSED,))
    reset, metrics = steps.report(agent, loop.learning, loop.replay.observations(u))
    learning = jax.tree.map(partial(jnp.where, recorded), reset, loop.learning)
    return replace(loop, learning=learning), metrics


_programs: list[tuple[Agent, Functional, Callable[..., Any]]] = []


def compile_train(agent: Agent, env: Functional) -> Callable[..., Any]:
    """Compile `train` ahead of time, to a function of what changes; the loop is donated.

    The program is kept for the next seed of the same environment. Parameters that depend on the
    seed are its argument, others are constants in it.
    """
    params = env.params if env.by_seed else None
    for known, other, program in _programs:
        alike = other.inner == env.inner and other.spec == env.spec
        same = env.by_seed or eqx.tree_equal(other.params, env.params)
        if known == agent and alike and bool(same):
            return partial(program, params)

    def function(params, loop, key, rounds, recorded):
        played = replace(env, params=params) if env.by_seed else env
        return train(agent, played, loop, key, rounds, recorded)

    key, rounds, recorded = jax.random.key(0), jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    loop = jax.eval_shape(lambda: start(agent, env, key))
    lowered = jax.jit(function, donate_argnums=1).lower(params, loop, key, rounds, recorded)
    _programs[:] = [(agent, env, lowered.compile(compiler_options=COMPILER_OPTIONS))]
    return partial(_programs[0][2], params)


@eqx.filter_jit
def play(
    agent: Agent, env: Functional, agent_state: PyTree, key: PRNG, episodes: int, sampled: bool
) -> tuple[Array, Array]:
    """Return return and length of episodes with the best guess, or each with a sample."""
    reset_key, step_key = jax.random.split(key)
    obs, states = jax.vmap(env.reset)(jax.random.split(reset_key, episodes))
    zero, none = jnp.zeros(episodes), jnp.zeros(episodes, jnp.int32)
    index_keys = jax.random.split(jax.random.fold_in(key, 2), episodes)
    index = jax.vmap(lambda key: chosen_index(agent, agent_state, key, sampled))(index_keys)

    def body(carry):
        i, states, obs, total, length, over = carry
        act_key, env_key = jax.random.split(jax.random.fold_in(step_key, i))
        u = jax.random.uniform(act_key, (episodes, env.spec.num_actions))
        seen = (index, obs, u, states.legal) if env.spec.masked else (index, obs, u)
        action = jax.vmap(partial(agent.act, agent_state))(*seen)
        keys = jax.random.split(env_key, episodes)
        obs, states, reward, terminated, truncated, _ = jax.vmap(env.step)(keys, states, action)
        total = total + jnp.where(over, 0.0, reward)
        return i + 1, states, obs, total, length + ~over, over | terminated | truncated

    begin = (none[0], states, obs, zero, none, none > 0)
    end = jax.lax.while_loop(lambda carry: ~jnp.all(carry[-1]), body, begin)
    return end[3], end[4]


class FunctionalRunner(StepRunner):
    """Learning by steps in one compiled program."""

    env: Functional

    def __init__(self, task: Task, env: Functional):
        env = env.stacked(task.frame_stack) if task.frame_stack else env
        super().__init__(task, env.seeded(task.seed))

    def read(self, observation: Any) -> np.ndarray:
        """Return observations as the agent takes them, also those of many arrays."""
        if len(self.env.reader.shapes) == 1 and self.env.reader.mask is None:
            return super().read(observation)
        arrays = jax.tree.map(jnp.asarray, observation)
        return super().read(self.env.reader(arrays, self.spec)[0])

    def read_mask(self, observation: Any, given: Any) -> np.ndarray | None:
        if self.env.reader.mask is None or given is not None:
            return super().read_mask(observation, given)
        arrays = jax.tree.map(jnp.asarray, observation)
        return np.asarray(self.env.reader(arrays, self.spec)[1])

    def start(self) -> StepLoop:
        return call_once(partial(start, self.agent, self.env), self.init_key)

    def chunks(self, loop: StepLoop) -> Iterator[Chunk]:
        program = compile_train(self.agent, self.env)
        since, elapsed = int(loop.learning.step), 0.0
        while not self.finished(loop):
            began, before = time.perf_counter(), int(loop.learning.step)
            left = self.rounds_per_record - before // self.round.steps % self.rounds_per_record
            end = min(self.task.budget, self.pauses(before))
            rounds = min(left, math.ceil((end - before) / self.round.steps))
            recorded = rounds == left or before + rounds * self.round.steps >= self.task.budget
            given = (self.train_key, np.int32(rounds), np.bool_(recorded))
            loop, metrics = jax.block_until_ready(program(loop, *given))
            took = time.perf_counter() - began
            elapsed += took
            check_rewards(self.env.name, np.asarray(loop.replay.reward))
            check_observations(self.env.name, np.asarray(loop.obs))
            if loop.replay.next_legal is not None:
                rows = min(int(loop.replay.written), len(loop.replay.action))
                check_masks(self.env.name, np.asarray(loop.replay.next_legal[:rows]))
            records = []
            if recorded:
                step = int(loop.learning.step)
                records = [self.record(loop, metrics, step - since, elapsed)]
                since, elapsed = step, 0.0
            yield Chunk(loop, records, took)

    def play(
        self, agent_state: PyTree, episodes: int, seed: int, *, sampled: bool = False
    ) -> Played:
        key = jax.random.key(seed)
        totals, lengths = play(self.agent, self.env, agent_state, key, episodes, sampled)
        return Played(totals.tolist(), lengths.tolist())

    def film(self, agent_state: PyTree, seed: int, see: See) -> None:
        if len(self.spec.shape) not in (2, 3):
            return super().film(agent_state, seed, see)
        agent, env = self.agent, self.env
        index, key = agent.greedy(agent_state), jax.random.key(seed)
        obs, state = env.reset(key)
        act = jax.jit(lambda *seen: agent.act(agent_state, index, *seen))
        step = eqx.filter_jit(env.step)
        over = False
        while not over:
            seen = np.asarray(obs)
            key, act_key, env_key = jax.random.split(key, 3)
            mask = (state.legal,) if env.spec.masked else ()
            action = act(obs, jax.random.uniform(act_key, (env.spec.num_actions,)), *mask)
            see(seen, partial(coloured, seen), int(action))
            obs, state, _, terminated, truncated, _ = step(env_key, state, action)
            over = bool(terminated | truncated)
