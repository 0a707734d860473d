"""The compiled runner for functional environments that are learnt by steps: MinAtar, for example.

Acting, the environments, the replay and learning are one XLA program; Python has its turn once a
record.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.envs.functional import Functional
from surveyor.replay.steps import Ring
from surveyor.training import steps
from surveyor.training.episodes import COMPILER_OPTIONS
from surveyor.training.steps import Learning, Rhythm
from surveyor.types import Metrics, Transition

DIAGNOSED = 32
"""How many past observations the logged diagnostics look at."""


class StepLoop(eqx.Module):
    """All that changes while training, and so all that a checkpoint holds."""

    learning: Learning
    ring: Ring
    env: PyTree
    obs: Shaped[Array, "envs ..."]


def start(agent: Agent, env: Functional, key: Key[Array, ""]) -> StepLoop:
    """Before the first step."""
    agent_key, env_key = jax.random.split(key)
    learning = steps.start(agent, env.spec, agent_key)
    obs, state = jax.vmap(env.reset)(jax.random.split(env_key, agent.envs))
    ring = Ring.create(env.spec, agent.replay_capacity, agent.envs, priority=agent.priority > 0)
    return StepLoop(learning, ring, state, obs)


def act(agent: Agent, env: Functional, key: Key[Array, ""], loop: StepLoop) -> StepLoop:
    """One step of every environment."""
    key = jax.random.fold_in(jax.random.fold_in(key, 0), loop.learning.step)
    act_key, env_key, index_key = jax.random.split(key, 3)
    action = steps.act(agent, loop.learning, env.spec, loop.obs, act_key)
    keys = jax.random.split(env_key, agent.envs)
    obs, state, reward, terminated, truncated, final = jax.vmap(env.step)(keys, loop.env, action)
    ended = terminated | truncated
    transitions = Transition(loop.obs, action, reward, final, terminated)
    learning = steps.observe(agent, loop.learning, transitions, reward, ended, index_key)
    ring = loop.ring.add(loop.obs, action, reward, final, terminated, ended)
    return StepLoop(learning, ring, state, obs)


def update(agent: Agent, key: Key[Array, ""], loop: StepLoop) -> StepLoop:
    """One gradient step."""
    key = jax.random.fold_in(jax.random.fold_in(key, 1), loop.learning.gradient_steps)
    draw_key, learn_key = jax.random.split(key)
    u = jax.random.uniform(draw_key, (agent.batch_size,))
    batch = loop.ring.sample(u, agent.n_step, agent.discount)
    learning, errors = steps.update(agent, loop.learning, batch, learn_key)
    ring = loop.ring
    if errors is not None:
        ring = ring.reprioritise(batch.number, errors, agent.priority)
    return StepLoop(learning, ring, loop.env, loop.obs)


def train(
    agent: Agent,
    env: Functional,
    loop: StepLoop,
    key: Key[Array, ""],
    rounds: Int[Array, ""],
) -> tuple[StepLoop, Metrics]:
    """So many rounds of acting and learning; returns what to log of them."""
    rhythm = Rhythm.of(agent)

    def body(_, loop):
        loop = jax.lax.fori_loop(0, rhythm.acts, lambda _, loop: act(agent, env, key, loop), loop)
        ready = (loop.learning.step > agent.warmup) & (loop.ring.count(agent.n_step) > 0)
        count = jnp.where(ready, rhythm.updates, 0)
        return jax.lax.fori_loop(0, count, lambda _, loop: update(agent, key, loop), loop)

    loop = jax.lax.fori_loop(0, rounds, body, loop)
    u = jax.random.uniform(jax.random.fold_in(key, 2), (DIAGNOSED,))
    seen = loop.ring.sample(u, 1, 1.0).obs
    learning, metrics = steps.report(agent, loop.learning, seen)
    return StepLoop(learning, loop.ring, loop.env, loop.obs), metrics


def compile_train(agent: Agent, env: Functional, loop: StepLoop) -> Callable[..., Any]:
    """Compile `train` ahead of time; it takes `(loop, key, rounds)`, and the loop is donated."""
    function = jax.jit(partial(train, agent, env), donate_argnums=0)
    lowered = function.lower(loop, jax.random.key(0), jnp.zeros((), jnp.int32))
    return lowered.compile(compiler_options=COMPILER_OPTIONS)


class Played(eqx.Module):
    """Episodes under way in a test."""

    env: PyTree
    obs: Shaped[Array, "envs ..."]
    total: Array
    length: Array
    over: Array


def play(
    agent: Agent, env: Functional, state: PyTree, key: Key[Array, ""], episodes: int
) -> tuple[Array, Array]:
    """Return and length of greedy episodes, all of them side by side."""
    reset_key, step_key = jax.random.split(key)
    obs, states = jax.vmap(env.reset)(jax.random.split(reset_key, episodes))
    zeros = jnp.zeros(episodes)
    begin = Played(states, obs, zeros, zeros.astype(jnp.int32), zeros > 1)
    index = agent.greedy(state)

    def body(carry):
        i, now = carry
        key = jax.random.fold_in(step_key, i)
        act_key, env_key = jax.random.split(key)
        u = jax.random.uniform(act_key, (episodes, env.spec.num_actions))
        action = jax.vmap(partial(agent.act, state, index))(now.obs, u)
        keys = jax.random.split(env_key, episodes)
        obs, states, reward, terminated, truncated, _ = jax.vmap(env.step)(keys, now.env, action)
        total = now.total + jnp.where(now.over, 0.0, reward)
        length = now.length + ~now.over
        return i + 1, Played(states, obs, total, length, now.over | terminated | truncated)

    _, end = jax.lax.while_loop(
        lambda carry: ~jnp.all(carry[1].over), body, (jnp.zeros((), jnp.int32), begin)
    )
    return end.total, end.length
