"""UBE: its Bellman equation of variances, by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.agents.ube import UBE
from surveyor.types import EnvSpec, Trail
from tests.common import VECTOR, begun, filled, learn, observations

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=3)


def test_ube_s_uncertainty_solves_its_bellman_equation():
    agent = UBE(theta=2.0, beta=0.5, hidden=3, discount=0.5, learning_rate=0.05)
    state = begun(agent, SPEC)
    np.testing.assert_allclose(agent.uncertainty(state, jnp.arange(4)), 1.0, rtol=1e-6)
    state = learn(agent, state, filled(0, 1, 0.0, 2, False), 600)
    phi = np.asarray(agent._features(state, jnp.arange(4)), float)[0]
    local = 2.0 * phi @ phi
    u = float(agent.uncertainty(state, jnp.int32(0))[1])
    np.testing.assert_allclose(u, local + 0.25 * 1.0, rtol=0.02)


def test_ube_s_uncertainty_over_several_steps_has_that_of_each():
    agent = UBE(theta=2.0, beta=0.5, hidden=3, discount=0.5)
    state = begun(agent, SPEC)
    data = filled(0, 1, 0.0, 2, False, b=2)
    between, taken = jnp.array([[1], [1]]), jnp.zeros((2, 1), jnp.int32)
    trail = Trail(between, taken, jnp.array([[0.5], [0.0]]))
    data = dataclasses.replace(data, trail=trail, discount=jnp.full(2, 0.25))
    features = agent._features(state, data.obs)
    next_u = jax.jit(agent.uncertainty)(state, data.next_obs)
    found = jax.jit(agent._bellman)(state, data, features, next_u[:, 0])
    phi = np.asarray(agent._features(state, jnp.arange(4)), float)
    local = 2.0 * np.sum(phi**2, axis=1)
    ahead = 0.25**2 * 1.0
    expected = [local[0] + 0.25 * local[1] + ahead, local[0] + ahead]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_ube_samples_are_independent_everywhere_and_never_nan():
    agent = UBE()
    state = begun(agent, SPEC)
    state = learn(agent, state, filled(0, 1, 0.0, 3, True), 2000)
    keys = jax.random.split(jax.random.key(1), 4000)
    draws = jax.vmap(lambda key: agent.q(state, agent.sample(state, key), jnp.arange(4)))(keys)
    flat = np.asarray(draws).reshape(4000, -1)
    assert np.all(np.isfinite(flat))
    live = flat[:, flat.std(0) > 1e-6]
    assert np.all(np.abs(np.corrcoef(live.T) - np.eye(live.shape[1])) < 0.08)
    assert np.all(np.asarray(agent.uncertainty(state, jnp.arange(4))) >= 0)


def test_an_index_has_one_noise_for_every_observation_however_it_is_asked():
    agent, spec = UBE(hidden=8), VECTOR
    state = begun(agent, spec)
    obs, index = observations(spec, 5), agent.sample(state, jax.random.key(1))
    q = jax.jit(agent.q)
    np.testing.assert_allclose(q(state, index, obs)[2], q(state, index, obs[2]), rtol=1e-5)
    other = agent.sample(state, jax.random.key(2))
    assert np.all(np.abs(np.asarray(q(state, index, obs) - q(state, other, obs))) > 1e-4)
