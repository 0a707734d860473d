"""Learning by episodes: the whole training loop as one XLA program.

Acting, replay, posterior, gradient steps and greedy tests are compiled together and called in
chunks of test intervals; between two calls Python reports, checkpoints and can stop. The cut into
chunks does not change the result: every random draw is derived from the run's key and the episode's
number.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from surveyor.agents.base import Agent
from surveyor.envs.base import Environment, Params
from surveyor.replay.episodes import EpisodeReplay
from surveyor.replay.strategies import fitting
from surveyor.types import PRNG, Metrics, Transition

TEST_EVERY = 10
"""Training episodes between two greedy tests."""
TESTS_TO_SOLVE = 10
"""Consecutive optimal tests that make a run solved."""
CHUNK = 64
"""Largest number of test intervals in one call of the program."""

Count = Int[Array, ""]
# XLA would split small loops over threads, which costs more than it saves; runs share the cores
# as whole processes instead.
COMPILER_OPTIONS: dict[str, str | bool] = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}


class Loop(eqx.Module):
    """Everything that changes while training, which a checkpoint holds."""

    agent_state: PyTree
    replay: EpisodeReplay
    episode: Int[Array, ""]
    gradient_steps: Int[Array, ""]
    first_success: Int[Array, ""]
    """First training episode with the optimal return, or -1."""
    passed: Int[Array, ""]
    """Optimal tests in a row so far."""
    solved_at: Int[Array, ""]
    """Episode of the first of `TESTS_TO_SOLVE` optimal tests in a row, or -1."""
    visits: Int[Array, "states actions"]
    """Visits of each state and action, in training."""


class Interval(eqx.Module):
    """Records between two tests; a chunk returns a stack of these."""

    episode: Int[Array, "*n"]
    """Episodes trained so far."""
    returns: Float[Array, "*n every"]
    """Return of each training episode; NaN where the budget ended before it."""
    lengths: Int[Array, "*n every"]
    test_return: Float[Array, "*n"]
    """Return of one greedy episode; NaN where no test was due."""
    metrics: dict[str, Float[Array, "*n"]]
    """Means over the interval's gradient steps."""


class Rollout(eqx.Module):
    """One episode, in arrays as long as the longest episode can be."""

    transitions: Transition
    length: Int[Array, ""]
    total: Float[Array, ""]


def start(agent: Agent, env: Environment, key: PRNG) -> Loop:
    """Return the loop before the first episode."""
    schedule = agent.schedule
    strategy = fitting(schedule.replay, "episodes")
    # Every array is a buffer of its own: all are donated.
    counts = ("episode", "gradient_steps", "passed")
    return Loop(
        agent_state=agent.init(env.spec, key),
        replay=EpisodeReplay.create(schedule.capacity, env.horizon, strategy),
        **{name: jnp.zeros((), jnp.int32) for name in counts},
        **{name: jnp.full((), -1, jnp.int32) for name in ("first_success", "solved_at")},
        visits=jnp.zeros((env.spec.num_states, env.spec.num_actions), jnp.int32),
    )


def optimal(env: Environment, total: Float[Array, "*n"]) -> Any:
    """Return whether returns are optimal, to within float32's rounding of a sum of rewards."""
    return total > env.optimal_return - 1e-3


def rollout(
    agent: Agent,
    env: Environment,
    params: Params,
    agent_state: PyTree,
    index: PyTree,
    key: PRNG,
    active: Any = True,
) -> Rollout:
    """Follow one index for one episode; an episode that is not `active` has no steps."""
    tie_key, reset_key, step_key = jax.random.split(key, 3)
    ties = jax.random.uniform(tie_key, (env.horizon, env.spec.num_actions))
    obs, env_state = env.reset(reset_key, params)
    integers = jnp.zeros(env.horizon, jnp.int32)
    steps = (integers, integers, jnp.zeros(env.horizon))
    false = jnp.zeros((), bool)

    def step(carry):
        obs, env_state, i, steps, _ = carry
        action = agent.act(agent_state, index, obs, ties[i])
        key = jax.random.fold_in(step_key, i)
        after = env.step(key, env_state, action, params)
        next_obs, env_state, reward, terminated, truncated, info = after
        steps = tuple(x.at[i].set(new) for x, new in zip(steps, (obs, action, reward), strict=True))
        end = (info["final_observation"], terminated, terminated | truncated)
        return next_obs, env_state, i + 1, steps, end

    carry = (obs, env_state, integers[0], steps, (obs, false, ~jnp.asarray(active)))
    _, _, length, steps, end = jax.lax.while_loop(lambda carry: ~carry[-1][-1], step, carry)
    # The observation after a step is the one before the next; only the last can be an end.
    obs, action, reward = steps
    last = jnp.arange(env.horizon) == length - 1
    next_obs = jnp.where(last, end[0], jnp.roll(obs, -1))
    transitions = Transition(obs, action, reward, next_obs, last & end[1])
    return Rollout(transitions, length, jnp.sum(reward))


@partial(jax.jit, static_argnames="agent")  # so that JAX traces it only once
def learn(
    agent: Agent, replay: EpisodeReplay, agent_state: PyTree, key: PRNG
) -> tuple[PyTree, Metrics]:
    """Take one gradient step."""
    batch_key, target_key = jax.random.split(key)
    batch = replay.sample(jax.random.uniform(batch_key, (agent.schedule.batch_size,)))
    agent_state, update = agent.learn(agent_state, batch, target_key)
    return agent_state, update.metrics


def train_episode(
    agent: Agent, env: Environment, params: Params, key: PRNG, loop: Loop
) -> tuple[Loop, Rollout, Metrics]:
    """Algorithm 1's outer loop: sample, act for an episode, observe, learn."""
    key = jax.random.fold_in(key, loop.episode)
    sample_key, act_key, learn_key = jax.random.split(key, 3)
    schedule, agent_state = agent.schedule, loop.agent_state
    index = agent.sample(agent_state, sample_key)
    record = rollout(agent, env, params, agent_state, index, act_key)
    mask = jnp.arange(env.horizon) < record.length
    replay = loop.replay.add(record.transitions, mask)
    agent_state = agent.observe(agent_state, record.transitions, mask)

    keys = jax.random.split(learn_key, schedule.updates)
    agent_state, metrics = jax.lax.scan(partial(learn, agent, replay), agent_state, keys)
    episode = loop.episode + 1
    first = (loop.first_success < 0) & optimal(env, record.total)
    loop = replace(
        loop,
        agent_state=agent_state,
        replay=replay,
        episode=episode,
        gradient_steps=loop.gradient_steps + schedule.updates,
        first_success=jnp.where(first, episode, loop.first_success),
        visits=loop.visits.at[record.transitions.obs, record.transitions.action].add(mask),
    )
    return loop, record, jax.tree.map(jnp.mean, metrics)


def test(
    agent: Agent, env: Environment, params: Params, key: PRNG, loop: Loop
) -> tuple[Loop, Float[Array, ""]]:
    """Play one greedy episode if a test is due, and update `solved_at`."""
    due = loop.episode % TEST_EVERY == 0
    # A child of the episode's key that its training does not use (those are its first three).
    key = jax.random.fold_in(jax.random.fold_in(key, loop.episode), 1000)
    index = agent.greedy(loop.agent_state)
    record = rollout(agent, env, params, loop.agent_state, index, key, due)
    passed = jnp.where(optimal(env, record.total), loop.passed + 1, 0)
    passed = jnp.where(due, passed, loop.passed)
    solved = (loop.solved_at < 0) & (passed >= TESTS_TO_SOLVE)
    first_test = loop.episode - (TESTS_TO_SOLVE - 1) * TEST_EVERY
    loop = replace(loop, passed=passed, solved_at=jnp.where(solved, first_test, loop.solved_at))
    return loop, jnp.where(due, record.total, jnp.nan)


def empty_interval(agent: Agent, loop: Loop) -> Interval:
    """Return the record of an interval in which nothing has happened yet."""
    shapes = jax.eval_shape(partial(learn, agent), loop.replay, loop.agent_state, jax.random.key(0))
    metrics = jax.tree.map(jnp.zeros_like, shapes[1])
    returns, lengths = jnp.full(TEST_EVERY, jnp.nan), jnp.zeros(TEST_EVERY, jnp.int32)
    return Interval(lengths[0], returns, lengths, returns[0], metrics)


def train_interval(
    agent: Agent,
    env: Environment,
    params: Params,
    key: PRNG,
    empty: Interval,
    episodes: Count,
    loop: Loop,
) -> tuple[Loop, Interval]:
    """Train up to the next test, or to the end of the budget of `episodes`, and test."""
    count = jnp.minimum(TEST_EVERY, episodes - loop.episode)
    each = partial(train_episode, agent, env, params, key)
    nothing = empty.returns, empty.lengths, empty.metrics

    def body(i, carry):
        loop, returns, lengths, metrics = carry
        loop, record, new = each(loop)
        metrics = jax.tree.map(lambda total, x: total + x / count, metrics, new)
        return loop, returns.at[i].set(record.total), lengths.at[i].set(record.length), metrics

    loop, returns, lengths, metrics = jax.lax.fori_loop(0, count, body, (loop, *nothing))
    loop, test_return = test(agent, env, params, key, loop)
    return loop, Interval(loop.episode, returns, lengths, test_return, metrics)


@lru_cache(maxsize=8)
def compile_chunk(
    agent: Agent, env: Environment, stop_when_solved: bool
) -> Callable[..., tuple[Loop, Interval, Count]]:
    """Compile a program that trains up to `intervals` intervals, for every seed of the problem.

    It takes `(loop, params, key, episodes, intervals)`, and the loop's buffers are donated to it.
    It returns the loop, the records of the intervals, and how many there were.
    """

    def train_chunk(loop: Loop, params: Params, key: PRNG, episodes: Count, intervals: Count):
        # Known beforehand: finding their shapes by tracing the loop would take as long again.
        empty = empty_interval(agent, loop)
        each = partial(train_interval, agent, env, params, key, empty, episodes)
        records = jax.tree.map(lambda x: jnp.zeros((CHUNK, *x.shape), x.dtype), empty)

        def going(carry):
            loop, _, done = carry
            over = (loop.solved_at >= 0) & stop_when_solved
            return (done < intervals) & (loop.episode < episodes) & ~over

        def body(carry):
            loop, records, done = carry
            loop, record = each(loop)
            return loop, jax.tree.map(lambda all, x: all.at[done].set(x), records, record), done + 1

        return jax.lax.while_loop(going, body, (loop, records, jnp.zeros((), jnp.int32)))

    key, integer = jax.random.key(0), jnp.zeros((), jnp.int32)
    loop = jax.eval_shape(lambda: start(agent, env, key))
    function = jax.jit(train_chunk, donate_argnums=0)
    lowered = function.lower(loop, env.default_params, key, integer, integer)
    return lowered.compile(compiler_options=COMPILER_OPTIONS)
