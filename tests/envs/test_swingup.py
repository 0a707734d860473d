"""The compiled environments of bsuite, with bsuite's own as the oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite import sweep
from bsuite.environments import deep_sea as bsuite_sea
from bsuite.experiments.cartpole_swingup.cartpole_swingup import CartpoleSwingup
from bsuite.utils import wrappers

import surveyor as sv
from surveyor.envs import families
from surveyor.envs.sea import DeepSea, Place
from surveyor.envs.swingup import STEPS, Cart, SwingUp
from surveyor.envs.tally import LOGGED, Tallied, Tally
from surveyor.errors import SurveyorError

KEY = jax.random.key(0)


def swing_ups():
    oracle = CartpoleSwingup(height_threshold=0.1, x_reward_threshold=0.9, seed=3)
    return oracle, SwingUp(0.1, 0.9)


def test_step_by_step_the_same_as_bsuite():
    oracle, env = swing_ups()
    step, rng, ups = jax.jit(env.step), np.random.default_rng(0), 0
    for episode in range(6):
        expected = oracle.reset()
        if episode % 2:  # near the top
            oracle._state = oracle._state._replace(theta=0.3 * rng.normal())
        time = 0
        while not expected.last():
            action = int(rng.integers(3)) if rng.random() < 0.3 else 1
            # From bsuite's own state at every step: chaos would make much of float32.
            before = [jnp.float32(value) for value in oracle._state[:4]]
            cart, time = Cart(*before, jnp.int32(time)), time + 1
            expected = oracle.step(action)
            *_, reward, over, truncated, info = step(KEY, cart, jnp.int32(action))
            np.testing.assert_allclose(
                info["final_observation"], expected.observation[0], atol=2e-5
            )
            assert float(reward) == pytest.approx(expected.reward, abs=1e-6)
            assert bool(over) == expected.last()
            assert not truncated
            ups += expected.reward > 0
    assert ups > 20


def test_an_episode_is_as_long_as_bsuite_s():
    oracle, _ = swing_ups()
    expected, length = oracle.reset(), 0
    while not expected.last():
        expected, length = oracle.step(1), length + 1
    assert length == STEPS


def test_it_begins_with_the_pole_down():
    _, env = swing_ups()
    _, carts = jax.vmap(lambda key: env.reset(key))(jax.random.split(KEY, 2_000))
    for values, middle in zip(carts[:4], (0, 0, np.pi, 0), strict=True):
        assert np.abs(values - middle).max() <= 0.05 + 1e-6
        assert np.std(values) == pytest.approx(0.1 / 12**0.5, rel=0.1)


@pytest.mark.parametrize("stochastic", [False, True])
def test_bad_episodes_are_counted_as_bsuite_counts_them(stochastic):
    size, rng = 5, np.random.default_rng(1)
    name = f"bsuite/deep_sea{'_stochastic' * stochastic}/0"
    tallied = families.find(name).make(name, "compiled").inner
    assert (tallied.env, tallied.episodes) == (DeepSea(10, stochastic), 10_000)
    oracle = bsuite_sea.DeepSea(size, deterministic=not stochastic, mapping_seed=42)
    sea = DeepSea(size, stochastic)
    params, bad = sea.seeded_params(42), 0
    for _ in range(60):
        oracle.reset()
        spoiled = False
        for _ in range(size):
            right = int(oracle._action_mapping[oracle._row, oracle._column])
            action = right if rng.random() < 0.9 else 1 - right
            place = Place(jnp.int32(oracle._row), jnp.int32(oracle._column))
            spoiled |= bool(sea.bad(place, jnp.int32(action), params))
            oracle.step(action)
        bad += spoiled
        assert bad == oracle._total_bad_episodes
    assert 5 < bad < 55


def test_what_is_counted_is_what_was_played():
    sea = DeepSea(3)
    env = Tallied(sea, "sea", episodes=40, share=0.5, earliest=4, mapping_seed=7)
    params, rng = env.default_params, np.random.default_rng(2)
    np.testing.assert_array_equal(params.mapping, sea.seeded_params(7).mapping)
    step = jax.jit(env.step)
    _, state = env.reset(KEY, params)
    assert state.tally == Tally.empty()
    returns, bad, solved_at = [], [], 0
    for episode in range(1, 51):
        good, earned = episode > 3, 0.0
        for row in range(3):
            place = state.inner
            action = int(params.mapping[row, int(place.column)]) if good else int(rng.integers(2))
            _, state, reward, *_ = step(KEY, state, jnp.int32(action), params)
            earned += float(reward)
        returns, bad = [*returns, earned], [*bad, earned < 0.99]
        low = np.mean(bad) < 0.5 and episode >= 4 and episode in LOGGED
        solved_at = solved_at or (episode if low else 0)
        assert int(state.tally.solved_at) == solved_at
    assert int(state.tally.episodes) == 40
    assert int(state.tally.bad) == sum(bad[:40])
    assert float(state.tally.total) == pytest.approx(sum(returns[:40]), abs=1e-4)
    assert float(state.tally.best) == pytest.approx(0.99)
    assert solved_at in LOGGED


def test_counts_are_looked_at_when_bsuite_logs():
    logged = [episode for episode in range(1, 10_001) if wrappers._logarithmic_logging(episode)]
    whole = [int(each) for each in LOGGED if each == int(each) and each <= 10_000]
    assert logged == whole


def test_settings_are_bsuite_s():
    name = "bsuite/cartpole_swingup/7"
    env = families.find(name).make(name, "compiled").inner
    known = sweep.SETTINGS["cartpole_swingup/7"]
    assert env.env == SwingUp(known["height_threshold"], known["x_reward_threshold"])
    assert env.episodes == 1_000


def test_what_cannot_be_compiled_says_so():
    with pytest.raises(SurveyorError, match="deep_sea, deep_sea_stochastic, cartpole_swingup can"):
        sv.train("dqn", "bsuite/catch/0", protocol="compiled", steps=10)
