"""The chain, with bsuite's DeepSea as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite.environments.deep_sea import DeepSea

from surveyor import envs

KEY = jax.random.key(0)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 25])
@pytest.mark.parametrize("seed", [0, 1, 17])
def test_step_by_step_the_same_as_deep_sea(size, seed):
    env, params = envs.make(f"Chain-{size}", seed)
    oracle = DeepSea(size, mapping_seed=seed)
    np.testing.assert_array_equal(params.mapping.reshape(size, size), oracle._action_mapping)
    step = jax.jit(env.step_env)
    rng = np.random.default_rng(seed)
    right = np.asarray(params.mapping).reshape(size, size)
    for episode in range(20):
        expected = oracle.reset()
        obs, state = env.reset(KEY, params)
        for row in range(size):
            assert expected.observation.ravel()[int(obs)] == 1
            # Every third episode goes right all the way, so that the goal is compared too.
            good = right[row, int(obs) % size]
            action = int(good) if episode % 3 == 0 else int(rng.integers(2))
            expected = oracle.step(action)
            obs, state, reward, terminated, _ = step(KEY, state, jnp.int32(action), params)
            assert float(reward) == pytest.approx(expected.reward, abs=1e-7)
            assert bool(terminated) == expected.last()
        assert int(obs) == size**2
        assert expected.observation.sum() == 0


def test_the_optimal_return_is_what_deep_sea_says():
    assert envs.make("Chain-9")[0].optimal_return == pytest.approx(DeepSea(9)._optimal_return)


def test_going_right_costs_a_hundredth_in_all_and_earns_one():
    env, params = envs.make("Chain-50", 4)
    _, state = env.reset(KEY, params)
    total = 0.0
    for _ in range(50):
        action = params.mapping[int(state)].astype(jnp.int32)
        _, state, reward, _, _ = env.step_env(KEY, state, action, params)
        total += float(reward)
    assert total == pytest.approx(0.99, abs=1e-5)
