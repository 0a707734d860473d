"""DQN, BDQN and UBE: their own mathematics, with numbers worked out by hand."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.agents import BDQN, DQN, UBE
from surveyor.agents.uniform import median_episodes
from surveyor.types import Batch, EnvSpec, Trail

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=3)


def batch(obs, action, reward, following, ended, b=100):
    def fill(x, kind):
        return jnp.full(b, x, kind)

    integers = (fill(obs, jnp.int32), fill(action, jnp.int32))
    rest = (fill(following, jnp.int32), fill(ended, bool), jnp.arange(b))
    return Batch(*integers, fill(reward, jnp.float32), *rest)


def learn(agent, state, data, steps):
    learn = jax.jit(agent.learn)
    for i in range(steps):
        state, metrics = learn(state, data, jax.random.key(i))
    return state, metrics


def test_epsilon_falls_in_a_straight_line_with_the_steps_seen():
    agent = DQN(epsilon_start=1.0, epsilon_end=0.2, epsilon_steps=100)
    state = agent.init(SPEC, jax.random.key(0))
    assert agent.epsilon(state) == 1.0
    state = agent.observe(state, batch(0, 0, 0.0, 1, False), jnp.arange(100) < 25)
    np.testing.assert_allclose(agent.epsilon(state), 0.8, rtol=1e-6)
    for _ in range(5):
        state = agent.observe(state, batch(0, 0, 0.0, 1, False), jnp.ones(100, bool))
    np.testing.assert_allclose(agent.epsilon(state), 0.2, rtol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_epsilon_greedy_takes_a_random_action_with_probability_epsilon(epsilon):
    agent, key = DQN(epsilon_start=epsilon), jax.random.key(0)
    state = agent.init(SPEC, key)
    obs = jnp.zeros((), jnp.int32)
    greedy = agent.act(state, agent.greedy(state), obs, jnp.array([0.99, 0.98]))
    best = int(jnp.argmax(agent.q(state, jnp.zeros(()), obs)))
    u = jax.random.uniform(jax.random.key(1), (20_000, 2))
    act = jax.jit(jax.vmap(lambda u: agent.act(state, agent.sample(state, key), obs, u)))
    assert abs(float(jnp.mean(act(u) == best)) - (1 - epsilon / 2)) < 0.012
    assert int(greedy) == best


def test_dqn_learns_the_reward_and_the_discounted_value_behind_it():
    agent = DQN(discount=0.5, learning_rate=0.02)
    state = agent.init(SPEC, jax.random.key(0))
    state, _ = learn(agent, state, batch(1, 0, 2.0, 3, True), 300)
    state, _ = learn(agent, state, batch(1, 1, 1.0, 3, True), 300)
    best = float(jnp.max(agent.q(state, jnp.zeros(()), jnp.int32(1))))
    state, _ = learn(agent, state, batch(0, 1, 0.25, 1, False), 200)
    q = agent.q(state, jnp.zeros(()), jnp.arange(2))
    best = float(jnp.max(q[1]))
    np.testing.assert_allclose(q[0, 1], 0.25 + 0.5 * best, atol=0.05)


def test_double_dqn_values_with_one_network_what_the_other_chooses():
    agent = DQN(double=True, learning_rate=0.02)
    state = agent.init(SPEC, jax.random.key(0))
    state, _ = learn(agent, state, batch(2, 0, 1.0, 3, True), 400)
    np.testing.assert_allclose(agent.q(state, jnp.zeros(()), jnp.int32(2))[0], 1.0, atol=0.05)
    assert np.all(np.asarray(state.network.steps) > 100)


def test_bdqn_s_covariance_is_that_of_linear_regression_on_the_hidden_layer():
    agent = BDQN(theta=2.0, beta=0.5, hidden=3)
    state = agent.init(SPEC, jax.random.key(0))
    seen = batch(0, 1, 0.0, 1, False, b=4)
    state = agent.observe(state, seen, jnp.arange(4) < 3)
    phi = np.asarray(agent._features(state, jnp.arange(4)), float)
    precision = np.eye(3) / 2.0 + 3 * np.outer(phi[0], phi[0]) / 0.5
    belief = agent.q_posterior(state, jnp.array([0, 2]))
    covariance = np.asarray(belief.covariance)
    inside = phi[[0, 2]] @ np.linalg.inv(precision) @ phi[[0, 2]].T
    np.testing.assert_allclose(covariance[1::2, 1::2], inside, rtol=1e-4)
    np.testing.assert_allclose(covariance[::2, ::2], 2.0 * phi[[0, 2]] @ phi[[0, 2]].T, rtol=1e-4)
    np.testing.assert_array_equal(covariance[::2, 1::2], 0.0)
    np.testing.assert_array_equal(belief.mean, 0.0)  # nothing leaks into a greedy test


def test_ube_s_uncertainty_solves_its_bellman_equation():
    agent = UBE(theta=2.0, beta=0.5, hidden=3, discount=0.5, learning_rate=0.05)
    state = agent.init(SPEC, jax.random.key(0))
    np.testing.assert_allclose(agent.uncertainty(state, jnp.arange(4)), 1.0, rtol=1e-6)
    state, _ = learn(agent, state, batch(0, 1, 0.0, 2, False), 600)
    phi = np.asarray(agent._features(state, jnp.arange(4)), float)[0]
    local = 2.0 * phi @ phi
    u = float(agent.uncertainty(state, jnp.int32(0))[1])
    np.testing.assert_allclose(u, local + 0.25 * 1.0, rtol=0.02)


def test_ube_s_uncertainty_over_several_steps_has_that_of_each():
    agent = UBE(theta=2.0, beta=0.5, hidden=3, discount=0.5)
    state = agent.init(SPEC, jax.random.key(0))
    data = batch(0, 1, 0.0, 2, False, b=2)
    trail = Trail(
        jnp.array([[1], [1]]), jnp.zeros((2, 1), jnp.int32), jnp.array([[0.5], [0.0]]), jnp.zeros(2)
    )
    data = dataclasses.replace(data, trail=trail, discount=jnp.full(2, 0.25))
    features = agent._features(state, data.obs)
    next_u = agent.uncertainty(state, data.next_obs)
    found = agent._bellman(state, data, features, next_u, jnp.zeros(2, jnp.int32))
    phi = np.asarray(agent._features(state, jnp.arange(4)), float)
    local = 2.0 * np.sum(phi**2, axis=1)
    ahead = 0.25**2 * 1.0
    expected = [local[0] + 0.25 * local[1] + ahead, local[0] + ahead]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_ube_samples_are_independent_everywhere_and_never_nan():
    agent = UBE()
    state = agent.init(SPEC, jax.random.key(0))
    state, _ = learn(agent, state, batch(0, 1, 0.0, 3, True), 2000)
    keys = jax.random.split(jax.random.key(1), 4000)
    draws = jax.vmap(lambda key: agent.q(state, agent.sample(state, key), jnp.arange(4)))(keys)
    flat = np.asarray(draws).reshape(4000, -1)
    assert np.all(np.isfinite(flat))
    live = flat[:, flat.std(0) > 1e-6]
    assert np.all(np.abs(np.corrcoef(live.T) - np.eye(live.shape[1])) < 0.08)
    assert np.all(np.asarray(agent.uncertainty(state, jnp.arange(4))) >= 0)


def test_the_median_of_uniform_exploration():
    np.testing.assert_allclose(median_episodes(1), 1.0)
    p = 2.0**-10
    np.testing.assert_allclose((1 - p) ** median_episodes(10), 0.5)
    np.testing.assert_allclose(median_episodes(60), np.log(2) * 2.0**60)
