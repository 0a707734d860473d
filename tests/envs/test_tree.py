"""The binary tree of figure 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor import envs

KEY = jax.random.key(0)


def walk(env, params, moves):
    """Follow moves (True is UP) from the start; returns states, rewards, terminations."""
    _, state = env.reset(KEY, params)
    states, rewards, ends = [], [], []
    for up in moves:
        meaning = int(params.mapping[int(state) // 2])
        action = jnp.int32(meaning if up else 1 - meaning)
        obs, state, reward, terminated, _ = env.step_env(KEY, state, action, params)
        states.append(int(obs))
        rewards.append(float(reward))
        ends.append(bool(terminated))
    return states, rewards, ends


@pytest.mark.parametrize("name", ["Tree-4", "TiedTree-4"])
def test_up_all_the_way_earns_one(name):
    states, rewards, ends = walk(*envs.make(name, 3), [True] * 4)
    assert states == [2, 4, 6, 8]
    assert rewards == [0, 0, 0, 1]
    assert ends == [False, False, False, True]


def test_down_ends_the_episode_in_an_odd_state_with_nothing():
    states, rewards, ends = walk(*envs.make("Tree-4", 1), [True, False])
    assert states == [2, 3]
    assert rewards == [0, 0]
    assert ends == [False, True]


def test_there_are_2l_plus_1_states():
    assert envs.make("Tree-7")[0].spec.num_states == 15


def test_action_meanings_are_independent_fair_coins_and_belong_to_the_seed():
    maps = np.stack([np.asarray(envs.make("Tree-200", seed)[1].mapping) for seed in range(50)])
    assert abs(maps.mean() - 0.5) < 0.02
    assert len({m.tobytes() for m in maps}) == 50
    np.testing.assert_array_equal(maps[7], envs.make("Tree-200", 7)[1].mapping)
    neighbours = np.mean(maps[:, 1:] == maps[:, :-1])
    assert abs(neighbours - 0.5) < 0.02


def test_tied_actions_mean_the_same_everywhere_and_differ_between_seeds():
    maps = [np.asarray(envs.make("TiedTree-30", seed)[1].mapping) for seed in range(20)]
    assert all(len(set(m.tolist())) == 1 for m in maps)
    assert {int(m[0]) for m in maps} == {0, 1}


def test_step_resets_by_itself_and_keeps_the_last_observation():
    env, params = envs.make("Tree-3", 0)
    _, state = env.reset(KEY, params)
    wrong = jnp.int32(1 - int(params.mapping[0]))
    obs, state, reward, terminated, truncated, info = env.step(KEY, state, wrong, params)
    assert (int(obs), int(state)) == (0, 0)
    assert int(info["final_observation"]) == 1
    assert (float(reward), bool(terminated), bool(truncated)) == (0.0, True, False)
