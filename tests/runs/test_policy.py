"""Actions of a trained agent: what the agent says, in one compiled call, also while it trains."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv
from surveyor.runs.policy import Policy


@pytest.fixture(scope="module")
def run():
    agent = dataclasses.replace(sv.DQN.preset("classic"), hidden=8, warmup=100)
    return sv.train(agent, "CartPole-v1", steps=400)


def test_a_batch_has_the_actions_of_its_observations(run):
    obs = np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32)
    actions, state = run.predict(obs)
    assert state is None
    assert actions.shape == (7,)
    q = run.agent.q(run.state, run.agent.greedy(run.state), jnp.asarray(obs))
    np.testing.assert_array_equal(actions, np.argmax(q, axis=1))
    assert [run.predict(one)[0].item() for one in obs] == actions.tolist()
    nested, _ = run.predict(obs[:6].reshape(2, 3, 4))
    np.testing.assert_array_equal(nested, actions[:6].reshape(2, 3))


def test_it_compiles_once_and_follows_training(run):
    policy, obs = run._policy, np.zeros(4, np.float32)
    run.predict(obs)
    compiled = policy._act._cache_size()
    before, loop = policy.greedy, run.loop
    try:
        moved = jax.tree.map(lambda x: x + 0, run.state)
        run.loop = dataclasses.replace(
            loop, learning=dataclasses.replace(loop.learning, agent_state=moved)
        )
        run.predict(obs)
        assert run._policy is policy
        assert policy.state is moved
        assert policy.greedy is not before
        assert policy._act._cache_size() == compiled
    finally:
        run.loop = loop


def test_the_belief_is_the_agent_s_in_one_compiled_call(run):
    obs = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    found = run.q_posterior(obs)
    expected = run.agent.q_posterior(run.state, jnp.asarray(obs))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-5)
    assert run.q_posterior(obs + 1).mean.shape == (3, 2)
    assert run._policy._belief._cache_size() == 1


def test_ties_are_broken_alike_without_a_generator_and_at_random_with_one():
    spec = sv.EnvSpec(0, 5, shape=(2,), dtype="float32")
    policy = Policy(sv.Uniform(), spec, sv.Uniform().init(spec, jax.random.key(0)))
    obs = np.zeros((200, 2), np.float32)
    first, again = (policy(obs, None, policy.greedy, None) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    rng = np.random.default_rng(0)
    random = [policy(obs, None, policy.greedy, rng) for _ in range(2)]
    assert np.any(random[0] != random[1])
    assert set(np.unique(random)) == set(range(5))
