"""RiverSwim, FrozenLake and the lock, with Gymnasium and arithmetic by hand as the oracles."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.envs import families
from surveyor.envs.small import FrozenLake, Lock, Now, RiverSwim
from surveyor.errors import SurveyorError

KEY = jax.random.key(0)


def frequencies(env, state, action, count=20_000):
    """Return how often each state and each reward follows."""
    params = env.default_params
    now = Now(jnp.int32(state), jnp.int32(0))

    def one(key):
        _, _, reward, over, cut_off, info = env.step(key, now, jnp.int32(action), params)
        return info["final_observation"], reward, over, cut_off

    states, rewards, over, cut_off = jax.jit(jax.vmap(one))(jax.random.split(KEY, count))
    assert not np.any(cut_off)
    share = np.bincount(np.asarray(states), minlength=len(params.reward)) / count
    return share, float(np.mean(rewards)), float(np.mean(over))


@pytest.mark.parametrize("slippery", [True, False])
def test_the_lake_steps_as_gymnasium_s_does(slippery):
    lake = FrozenLake(4, slippery)
    oracle = gymnasium.make("FrozenLake-v1", is_slippery=slippery).unwrapped.P
    for state, action in ((0, 1), (6, 1), (9, 2), (14, 2), (14, 1), (3, 3)):
        share, reward, over = frequencies(lake, state, action)
        expected, mean, ends = np.zeros(16), 0.0, 0.0
        for p, follows, earned, end in oracle[state][action]:
            expected[follows] += p
            mean, ends = mean + p * earned, ends + p * end
        np.testing.assert_allclose(share, expected, atol=0.015)
        assert (reward, over) == pytest.approx((mean, ends), abs=0.015)


def test_the_river_flows_as_it_was_published():
    river = RiverSwim(6)
    share, reward, _ = frequencies(river, 2, 1)
    np.testing.assert_allclose(share, [0, 0.05, 0.6, 0.35, 0, 0], atol=0.015)
    assert reward == 0
    share, reward, over = frequencies(river, 5, 1)
    np.testing.assert_allclose(share, [0, 0, 0, 0, 0.4, 0.6], atol=0.015)
    assert (reward, over) == (1.0, 0.0)
    share, reward, _ = frequencies(river, 0, 0)
    assert (share[0], reward) == (1.0, pytest.approx(0.005))
    assert frequencies(river, 0, 1)[0][1] == pytest.approx(0.6, abs=0.015)


def test_episodes_are_cut_off_at_the_horizon_and_begin_again():
    river = RiverSwim(3)
    params = river.default_params
    last = Now(jnp.int32(1), jnp.int32(river.horizon - 1))
    obs, state, _, over, cut_off, info = river.step(KEY, last, jnp.int32(0), params)
    assert (bool(over), bool(cut_off), int(info["final_observation"])) == (False, True, 0)
    assert (int(obs), int(state.time)) == (0, 0)


def test_the_best_return_is_what_its_policy_earns():
    lake = FrozenLake(4)
    p, follows, reward, over = lake.outcomes()
    value = np.zeros(16)
    policies = []
    for _ in range(lake.horizon):
        q = np.sum(p * (reward + ~over * value[follows]), axis=-1)
        policies.append(q.argmax(axis=-1))
        value = q.max(axis=-1)
    env, rng, total = gymnasium.make("FrozenLake-v1"), np.random.default_rng(0), 0.0
    for _ in range(400):
        obs, _ = env.reset(seed=int(rng.integers(2**31)))
        for policy in reversed(policies):
            obs, earned, ended, cut_off, _ = env.step(int(policy[obs]))
            total += earned
            if ended or cut_off:
                break
    assert total / 400 == pytest.approx(lake.optimal_return, abs=0.06)
    assert FrozenLake(8, slippery=False).optimal_return == 1.0
    assert RiverSwim(2).optimal_return > 20 * 0.005


def test_a_lock_opens_by_its_digits_only():
    lock = Lock(5)
    params = lock.seeded_params(3)
    digits = np.random.default_rng(3).integers(3, size=5)
    for wrong in (None, 0, 4):
        obs, dial = lock.reset(KEY, params)
        assert not np.any(obs)
        for place, digit in enumerate(digits):
            action = (digit + 1) % 3 if place == wrong else digit
            obs, dial, reward, over, _, info = lock.step(KEY, dial, jnp.int32(action), params)
            final = np.asarray(info["final_observation"])
            assert final[:-1] @ 2 ** np.arange(lock.bits) == place + 1
            assert bool(final[-1]) == (wrong is not None and place >= wrong)
            assert bool(over) == (place == 4)
            assert float(reward) == (place == 4 and wrong is None)
        assert not np.any(obs)  # the next episode's first
    assert np.any(lock.seeded_params(4).mapping != params.mapping)


def test_names_and_families():
    assert families.find("FrozenLake-v1").name == "Gymnasium"
    for name in ("RiverSwim-12", "FrozenLake-8x8", "FrozenLake-4x4-firm"):
        family = families.find(name)
        assert family.numbered(name)
        assert family.preset(name) == "numbered"
        assert family.make(name, None).name == name
    assert families.find("Lock-8").preset("Lock-8") == "classic"
    assert families.find("Lock-8").reference("Lock-8") == (0.0, 1.0)
    assert families.find("RiverSwim-07").canonical("RiverSwim-07") == "RiverSwim-7"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RiverSwim-1", "must be a whole number from 2 to 1,000"),
        ("Lock-x", "must be a whole number from 2 to 1,000; for example 'Lock-12'"),
        ("FrozenLake-9x9", "there are FrozenLake-4x4, FrozenLake-8x8"),
        ("riverswim-9", "did you mean 'RiverSwim-9'"),
    ],
)
def test_a_bad_name_is_answered_in_one_sentence(name, said):
    with pytest.raises(SurveyorError, match=said):
        families.find(name).canonical(name)
