"""What every agent in the registry promises."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor import agents
from surveyor.agents.base import argmax
from surveyor.types import Batch, EnvSpec

NO_BELIEF = (agents.DQN, agents.Uniform)
"""Agents whose index is not drawn at random."""
SPEC = EnvSpec(num_states=12, num_actions=3, horizon=12)


@pytest.fixture(params=sorted(agents.REGISTRY))
def agent(request):
    return agents.named(request.param)()


def batch(n, seed=0):
    rng = np.random.default_rng(seed)
    obs, action = rng.integers(0, 12, n), rng.integers(0, 3, n)
    return Batch(
        jnp.asarray(obs, jnp.int32),
        jnp.asarray(action, jnp.int32),
        jnp.asarray(rng.standard_normal(n), jnp.float32),
        jnp.asarray((obs + 1) % 12, jnp.int32),
        jnp.asarray(obs == 11),
        jnp.arange(n),
    )


def same(a, b):
    return all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def like(a, b):
    shapes = [jax.tree.map(lambda x: (x.shape, x.dtype), tree) for tree in (a, b)]
    return shapes[0] == shapes[1]


def test_the_five_verbs_compile_and_keep_the_state_s_shape(agent):
    state = jax.jit(agent.init, static_argnums=0)(SPEC, jax.random.key(0))
    index = jax.jit(agent.sample)(state, jax.random.key(1))
    assert jax.jit(agent.q)(state, index, jnp.int32(4)).shape == (3,)
    assert jax.jit(agent.q)(state, index, jnp.arange(5)).shape == (5, 3)
    assert jax.jit(agent.q)(state, agent.greedy(state), jnp.arange(5)).shape == (5, 3)
    seen = jax.jit(agent.observe)(state, batch(6), jnp.arange(6) < 4)
    assert like(seen, state)
    learnt, metrics = jax.jit(agent.learn)(seen, batch(agent.batch_size), jax.random.key(2))
    assert like(learnt, state)
    assert all(value.shape == () and np.isfinite(value) for value in metrics.values())


def test_same_key_same_result_and_other_key_other_sample(agent):
    first = agent.init(SPEC, jax.random.key(0))
    assert same(first, agent.init(SPEC, jax.random.key(0)))
    sample = jax.jit(agent.sample)
    assert same(sample(first, jax.random.key(1)), sample(first, jax.random.key(1)))
    if not isinstance(agent, NO_BELIEF):
        others = [sample(first, jax.random.key(i)) for i in range(2, 8)]
        assert not all(same(sample(first, jax.random.key(1)), other) for other in others)


def test_nothing_valid_to_observe_changes_nothing(agent):
    state = agent.init(SPEC, jax.random.key(0))
    after = jax.jit(agent.observe)(state, batch(4), jnp.zeros(4, bool))
    index = agent.greedy(state)
    for before, now in zip(
        jax.tree.leaves(jax.jit(agent.q_posterior)(state, jnp.arange(3))),
        jax.tree.leaves(jax.jit(agent.q_posterior)(after, jnp.arange(3))),
        strict=True,
    ):
        np.testing.assert_allclose(before, now, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(
        agent.q(state, index, jnp.arange(3)), agent.q(after, index, jnp.arange(3))
    )


def test_the_q_posterior_is_the_distribution_of_sampled_q(agent):
    state = agent.init(SPEC, jax.random.key(0))
    state = jax.jit(agent.observe)(state, batch(50), jnp.ones(50, bool))
    learn = jax.jit(agent.learn)
    for i in range(20):
        state, _ = learn(state, batch(agent.batch_size, i), jax.random.key(i))
    obs = jnp.array([0, 5, 11])
    belief = jax.jit(agent.q_posterior)(state, obs)
    assert belief.mean.shape == (3, 3)
    assert belief.covariance.shape == (9, 9)
    draw = jax.vmap(lambda k: agent.q(state, agent.sample(state, k), obs).reshape(-1))
    draws = np.asarray(draw(jax.random.split(jax.random.key(9), 20_000)), np.float64)
    scale = np.sqrt(np.diag(belief.covariance)) + 1e-6
    assert np.all(np.abs(draws.mean(0) - belief.mean.reshape(-1)) < 0.1 * scale)
    sample = np.atleast_2d(np.cov(draws.T))
    assert np.all(np.abs(sample - belief.covariance) < 0.15 * np.outer(scale, scale) + 1e-9)


def test_hyperparameters_are_plain_values_and_name_and_agent_agree(agent):
    values = dataclasses.asdict(agent)
    assert all(isinstance(value, int | float | str | bool) for value in values.values())
    name = agents.name_of(agent)
    assert agents.make(name, values) == agent
    assert hash(agent) == hash(agents.make(name, values))


def test_every_hyperparameter_of_su_says_what_it_is():
    import inspect

    parts = [inspect.getsource(base) for base in agents.SU.mro() if "surveyor" in base.__module__]
    source = "\n".join(parts)
    for field in dataclasses.fields(agents.REGISTRY["su"]):
        after = source.split(f"    {field.name}: ")[1].splitlines()[1]
        assert after.strip().startswith('"""'), field.name


def test_ties_are_broken_fairly_and_only_ties():
    u = jax.random.uniform(jax.random.key(0), (6000, 3))
    tied = jax.vmap(lambda u: argmax(jnp.array([1.0, 0.0, 1.0]), u))(u)
    counts = np.bincount(tied, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 3000) < 200
    clear = jax.vmap(lambda u: argmax(jnp.array([0.0, 0.0, 1e-6]), u))(u)
    assert set(clear.tolist()) == {2}
