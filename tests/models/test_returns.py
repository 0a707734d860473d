"""The range of returns, beside sums in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.models.returns import Returns

GAMMA = 0.9


def ranges(rewards):
    """Return the smallest and largest discounted sum of a stretch, its last reward in full."""
    sums = [0.0]
    for end in range(len(rewards)):
        for start in range(end + 1):
            stretch = rewards[start : end + 1]
            sums.append(sum(GAMMA ** (len(stretch) - 1 - i) * r for i, r in enumerate(stretch)))
    return min(sums), max(sums)


def test_one_episode_after_the_other():
    rng, along = np.random.default_rng(0), jax.jit(lambda r, x, m: r.along(x, m, GAMMA))
    returns, low, high = Returns.create(1), 0.0, 0.0
    for _ in range(6):
        rewards, length = rng.standard_normal(12).astype(np.float32), rng.integers(1, 13)
        returns = along(returns, jnp.asarray(rewards), jnp.arange(12) < length)
        found = ranges(rewards[:length])
        low, high = min(low, found[0]), max(high, found[1])
        np.testing.assert_allclose(returns.seen, [low, high], rtol=1e-5)


def test_environments_side_by_side_end_each_for_itself():
    rng, beside = np.random.default_rng(1), jax.jit(lambda r, x, t, m: r.beside(x, t, m, GAMMA))
    returns, stretches, done = Returns.create(3), [[], [], []], []
    for _ in range(40):
        reward, over = rng.standard_normal(3).astype(np.float32), rng.random(3) < 0.1
        mask = rng.random(3) < 0.8
        returns = beside(returns, *map(jnp.asarray, (reward, over, mask)))
        for e in np.flatnonzero(mask):
            stretches[e].append(reward[e])
            if over[e]:
                done.append(stretches[e])
                stretches[e] = []
    found = np.array([ranges(stretch) for stretch in [*done, *stretches]])
    np.testing.assert_allclose(returns.seen, [found[:, 0].min(), found[:, 1].max()], rtol=1e-5)
    assert len(done) > 3


def test_without_rewards_the_range_is_zero():
    returns = Returns.create(2).along(jnp.zeros(5), jnp.ones(5, bool), GAMMA)
    np.testing.assert_array_equal(returns.seen, [0.0, 0.0])
