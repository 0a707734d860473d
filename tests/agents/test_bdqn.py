"""BDQN: Bayesian linear regression on the hidden layer, by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.agents.bdqn import BDQN
from surveyor.types import EnvSpec
from tests.common import begun, filled, learn

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=3)


def test_bdqn_s_covariance_is_that_of_linear_regression_on_the_hidden_layer():
    agent = BDQN(theta=2.0, beta=0.5, hidden=3)
    state = begun(agent, SPEC)
    seen = filled(0, 1, 0.0, 1, False, b=4)
    state = jax.jit(agent.observe)(state, seen, jnp.arange(4) < 3)
    phi = np.asarray(agent._features(state, jnp.arange(4)), float)
    precision = np.eye(3) / 2.0 + 3 * np.outer(phi[0], phi[0]) / 0.5
    belief = jax.jit(agent.q_posterior)(state, jnp.array([0, 2]))
    covariance = np.asarray(belief.covariance)
    inside = phi[[0, 2]] @ np.linalg.inv(precision) @ phi[[0, 2]].T
    np.testing.assert_allclose(covariance[1::2, 1::2], inside, rtol=1e-4)
    np.testing.assert_allclose(covariance[::2, ::2], 2.0 * phi[[0, 2]] @ phi[[0, 2]].T, rtol=1e-4)
    np.testing.assert_array_equal(covariance[::2, 1::2], 0.0)
    np.testing.assert_array_equal(belief.mean, 0.0)  # nothing leaks into a greedy test


def test_samples_are_around_the_weights_that_q_learning_found():
    agent = BDQN(theta=0.25, beta=0.5, hidden=8, learning_rate=0.02)
    state = begun(agent, SPEC)
    state = learn(agent, state, filled(1, 0, 2.0, 3, True), 300)
    np.testing.assert_allclose(agent.q(state, agent.greedy(state), jnp.int32(1))[0], 2.0, atol=0.1)
    keys = jax.random.split(jax.random.key(1), 20_000)
    draws = np.asarray(jax.vmap(lambda key: agent.sample(state, key))(keys), np.float64)
    np.testing.assert_allclose(draws.mean(0), agent.greedy(state), atol=0.02)
    np.testing.assert_allclose(draws.var(0), 0.25, rtol=0.1)
