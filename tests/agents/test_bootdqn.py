"""Bootstrapped DQN: coins, priors, heads, by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.agents.bootdqn import BootDQN
from surveyor.types import Batch, EnvSpec
from tests.common import begun

SPEC = EnvSpec(num_states=5, num_actions=2, horizon=4)


def batch(number):
    b = len(number)
    return Batch(
        jnp.zeros(b, jnp.int32),
        jnp.zeros(b, jnp.int32),
        jnp.ones(b),
        jnp.ones(b, jnp.int32),
        jnp.ones(b, bool),
        jnp.asarray(number, jnp.int32),
    )


def each(agent, state, obs):
    """Return Q(s, ·) of every head."""
    q = jax.jit(jax.vmap(agent.q, (None, 0, None), 1))
    return np.asarray(q(state, agent.greedy(state)[:, None], obs))


def test_a_transition_s_coins_are_the_same_each_time_and_fall_with_the_probability():
    agent = BootDQN(bootstrap=0.75)
    state = begun(agent, SPEC)
    numbers, heads = jnp.arange(2000), jnp.arange(10)
    mask = jax.jit(agent._mask)
    coins = mask(state, numbers, heads)
    np.testing.assert_array_equal(coins, mask(state, numbers, heads))
    np.testing.assert_array_equal(coins[7:9, 3:5], mask(state, numbers[7:9], heads[3:5]))
    assert abs(float(coins.mean()) - 0.75) < 0.015
    assert np.all(np.abs(np.corrcoef(np.asarray(coins).T) - np.eye(10)) < 0.11)
    other = agent.init(SPEC, jax.random.key(1))
    assert not np.array_equal(coins, mask(other, numbers, heads))


def test_a_head_learns_only_from_its_bootstrap():
    agent = BootDQN(bootstrap=0.5, trained="all", batch_size=1)
    state = begun(agent, SPEC)
    everyone = agent.greedy(state)
    coins = np.asarray(agent._mask(state, jnp.array([3]), everyone))[0]
    assert 0 < coins.sum() < 10
    before = each(agent, state, jnp.zeros(1, jnp.int32))[0, :, 0]
    after, _ = jax.jit(agent.learn)(state, batch([3]), jax.random.key(2))
    change = np.abs(each(agent, after, jnp.zeros(1, jnp.int32))[0, :, 0] - before)
    np.testing.assert_array_equal(change > 0, coins > 0)


def test_one_head_is_trained_at_a_time_and_the_others_stand_still():
    agent = BootDQN(bootstrap=1.0)
    state = begun(agent, SPEC)
    after, _ = jax.jit(agent.learn)(state, batch([0] * 100), jax.random.key(1))
    assert int(after.ensemble.steps.sum()) == 1
    head = int(np.argmax(after.ensemble.steps))
    change = np.abs(each(agent, after, jnp.arange(5)) - each(agent, state, jnp.arange(5)))
    moved = np.max(change, axis=(0, 2)) > 0
    assert moved[head]
    assert moved.sum() == 1


def test_q_is_network_plus_weighted_prior_and_tests_take_the_mean():
    agent = BootDQN(prior_weight=3.0)
    state = begun(agent, SPEC)
    obs, heads = jnp.arange(5), agent.greedy(state)
    key = jax.random.split(jax.random.key(0), 3)[1]
    prior = agent.q_model(SPEC, key, agent.ensemble).q(obs, heads)
    total = state.ensemble.q(obs, heads) + 3.0 * prior
    np.testing.assert_allclose(agent.q(state, heads, obs), total.mean(1), rtol=1e-5)
    np.testing.assert_allclose(agent.q(state, heads[2:3], obs), total[:, 2], rtol=1e-5)
    assert BootDQN(prior_weight=0.0).init(SPEC, jax.random.key(0)).prior is None


def test_the_network_s_target_leaves_out_what_the_prior_says():
    agent = BootDQN(ensemble=1, prior_weight=5.0, bootstrap=1.0, learning_rate=0.05)
    state = begun(agent, SPEC)
    learn = jax.jit(agent.learn)
    for i in range(300):
        state, _ = learn(state, batch([0] * 100), jax.random.key(i))
    q = agent.q(state, agent.greedy(state), jnp.zeros((), jnp.int32))
    np.testing.assert_allclose(q[0], 1.0, atol=0.02)  # terminal, reward 1: prior and all


def test_the_belief_is_the_spread_of_the_heads():
    agent = BootDQN(prior_weight=3.0)
    state, obs = begun(agent, SPEC), jnp.arange(2)
    heads = np.asarray(each(agent, state, obs), np.float64).swapaxes(0, 1).reshape(10, 4)
    belief = jax.jit(agent.q_posterior)(state, obs)
    np.testing.assert_allclose(belief.mean.reshape(-1), heads.mean(0), rtol=1e-4)
    covariance = np.cov(heads.T, bias=True)
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-3, atol=1e-5)
