"""HyperAgent: its index, its hypermodel and its targets, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.agents.hyperagent import HyperAgent, on_sphere
from surveyor.types import Batch, EnvSpec
from tests.common import begun

VECTORS = EnvSpec(num_states=0, num_actions=3, shape=(5,), dtype="float32")
NUMBERS = EnvSpec(num_states=5, num_actions=3, horizon=4)
BOTH = pytest.mark.parametrize("spec", [VECTORS, NUMBERS], ids=["network", "table"])


def observations(spec, count=5):
    if spec.tabular:
        return jnp.arange(count) % spec.num_states
    return jax.random.normal(jax.random.key(7), (count, *spec.shape))


def batch(spec, terminated=False):
    obs = observations(spec, 4)
    action, reward = jnp.array([0, 1, 2, 1]), jnp.array([1.0, -1.0, 0.5, 0.0])
    return Batch(obs, action, reward, obs[::-1], jnp.full(4, terminated), jnp.arange(4))


def heads(agent, state, obs, target=False):
    """Return m and h + prior_scale · p, in NumPy."""
    found = np.array((state.model.target_q if target else state.model.q)(obs), np.float64)
    if state.prior is not None:
        found[:, 1:] += np.asarray(state.prior.q(obs, jnp.arange(agent.dimensions)))
    return found


@BOTH
def test_q_is_linear_in_the_index_and_evaluations_act_on_the_mean(spec):
    agent = HyperAgent()
    state, obs = begun(agent, spec), observations(spec)
    z = agent.sample(state, jax.random.key(3))
    of_heads = heads(agent, state, obs)
    expected = of_heads[:, 0] + np.einsum("k,bka->ba", np.asarray(z), of_heads[:, 1:])
    np.testing.assert_allclose(agent.q(state, z, obs), expected, atol=1e-5)
    mean = agent.q(state, agent.greedy(state), obs)
    np.testing.assert_allclose(mean, of_heads[:, 0], atol=1e-6)


def test_the_index_is_uniform_on_the_sphere():
    z = np.asarray(on_sphere(jax.random.key(0), (20_000, 4)))
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(z.mean(0), 0, atol=0.015)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(4) / 4, atol=0.01)


def test_the_prior_is_as_large_as_its_scale_says_and_is_never_trained():
    small, large = HyperAgent(prior_scale=1.0), HyperAgent(prior_scale=10.0)
    obs = observations(VECTORS)
    of_small, of_large = (begun(agent, VECTORS).prior for agent in (small, large))
    which = jnp.arange(4)
    assert of_small is not None
    assert of_large is not None
    np.testing.assert_allclose(
        10 * of_small.q(obs, which), of_large.q(obs, which), rtol=1e-5, atol=1e-5
    )
    weights = np.asarray(of_small.W).reshape(small.hidden, small.dimensions, -1)
    assert abs(np.mean(np.sum(weights**2, axis=1)) - 1) < 0.2  # each unit's norm over the index
    state = begun(large, VECTORS)
    after, _ = jax.jit(large.learn)(state, batch(VECTORS), jax.random.key(0))
    np.testing.assert_array_equal(after.prior.q(obs, which), state.prior.q(obs, which))
    assert begun(HyperAgent(prior_scale=0.0), VECTORS).prior is None


@BOTH
@pytest.mark.parametrize("target", ["independent", "optimistic", "same"])
def test_targets_agree_with_numpy(spec, target):
    agent = HyperAgent(target=target, target_indices=6, target_every=1000)
    state, drawn, key = begun(agent, spec), batch(spec), jax.random.key(5)
    for _ in range(3):  # so that the network and its target network differ
        state, _ = jax.jit(agent.learn)(state, drawn, key)
    z = on_sphere(jax.random.key(6), (4, 2, agent.dimensions))
    found = agent.next_value(state, drawn, z, key)
    count = {"independent": 1, "optimistic": 6, "same": 2}[target]
    own = np.asarray(z if target == "same" else on_sphere(key, (4, count, agent.dimensions)))
    q = [heads(agent, state, drawn.next_obs, target=which) for which in (False, True)]
    q = [each[:, :1] + np.einsum("bnk,bka->bna", own, each[:, 1:]) for each in q]
    if target == "optimistic":
        q = [each.max(axis=1, keepdims=True) for each in q]
    chosen = q[0].argmax(-1)[..., None]
    np.testing.assert_allclose(found, np.take_along_axis(q[1], chosen, -1)[..., 0], atol=1e-4)


@BOTH
def test_every_index_learns_the_reward_of_a_last_step(spec):
    agent = HyperAgent(learning_rate=3e-3, prior_scale=1.0)
    state, drawn = begun(agent, spec), batch(spec, terminated=True)
    one = lambda state, key: (agent.learn(state, drawn, key)[0], None)  # noqa: E731
    keys = jax.random.split(jax.random.key(0), 2000)
    state, _ = jax.jit(lambda state: jax.lax.scan(one, state, keys))(state)
    indices, _ = agent.sample_many(state, jax.random.key(1), 50)
    q = np.asarray(jax.vmap(lambda z: agent.q(state, z, drawn.obs))(indices))
    taken = q[:, np.arange(4), np.asarray(drawn.action)]
    np.testing.assert_allclose(taken, np.tile(drawn.reward, (50, 1)), atol=0.15)
    others = q[:, np.arange(4), (np.asarray(drawn.action) + 1) % 3]
    assert others.std(axis=0).min() > 5 * taken.std(axis=0).max()  # untried: as uncertain as ever


def test_an_optimistic_target_is_never_below_the_mean_of_its_indices():
    agent = HyperAgent(target="optimistic", target_indices=50)
    state, drawn = begun(agent, VECTORS), batch(VECTORS)
    z = on_sphere(jax.random.key(6), (4, 1, agent.dimensions))
    best = agent.next_value(state, drawn, z, jax.random.key(0))
    mean = agent.q(state, agent.greedy(state), drawn.next_obs).max(axis=1)
    assert np.all(np.asarray(best)[:, 0] > np.asarray(mean))


@BOTH
def test_without_a_prior_it_learns_as_with_one_of_nearly_zero(spec):
    plain, tiny = (HyperAgent(prior_scale=scale, indices=3) for scale in (0.0, 1e-20))
    drawn, key = batch(spec), jax.random.key(2)
    after, update = jax.jit(plain.learn)(begun(plain, spec), drawn, key)
    expected, other = jax.jit(tiny.learn)(begun(tiny, spec), drawn, key)
    np.testing.assert_allclose(update.errors, other.errors, atol=1e-5)
    q = (each.model.q(drawn.obs) for each in (after, expected))
    np.testing.assert_allclose(*q, rtol=1e-4, atol=1e-5)
