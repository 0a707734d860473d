"""Craftax-Classic by name, with Craftax itself as the oracle."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from craftax.craftax_env import make_craftax_env_from_name

from surveyor.envs import families
from surveyor.errors import SurveyorError

NAME = "Craftax-Classic-Symbolic-v1"
KEY = jax.random.key(2)
SHORT = 12


def test_spaces_and_states_without_typed_keys_which_checkpoints_cannot_hold():
    env = families.find(NAME).make(NAME, None)
    assert (env.spec.shape, env.spec.num_actions) == ((1345,), 17)
    obs, state = jax.eval_shape(env.reset, KEY)
    after = jax.eval_shape(env.step, KEY, state, jnp.int32(0))
    assert after[0].shape == after[5].shape == obs.shape
    shapes = [jax.tree.map(lambda x: (x.shape, x.dtype), s) for s in (state, after[1])]
    assert shapes[0] == shapes[1]
    assert not any(jnp.issubdtype(x.dtype, jax.dtypes.prng_key) for x in jax.tree.leaves(state))


@pytest.mark.slow
def test_step_by_step_the_same_as_craftax_with_final_observations_and_truncations():
    env = families.find(NAME).make(NAME, None)
    oracle = make_craftax_env_from_name(NAME, auto_reset=True)
    params = dataclasses.replace(oracle.default_params, max_timesteps=SHORT)
    env = eqx.tree_at(lambda env: env.params, env, params)
    obs, state = eqx.filter_jit(env.reset)(KEY)
    expected, other = jax.jit(lambda key: oracle.reset(key, params))(jax.random.key_data(KEY))
    step, see = eqx.filter_jit(env.step), jax.jit(oracle.get_obs)
    known = jax.jit(lambda key, state, action: oracle.step(key, state, action, params))
    for t, key in enumerate(jax.random.split(KEY, 2 * SHORT), 1):
        np.testing.assert_array_equal(obs, expected)
        action = jax.random.randint(key, (), 0, 17)
        if t == SHORT + 5:  # now the player dies
            state, other = (
                dataclasses.replace(x, player_health=jnp.int32(0)) for x in (state, other)
            )
        obs, state, reward, terminated, truncated, final = step(key, state, action)
        expected, other, earned, done, _ = known(jax.random.key_data(key), other, action)
        assert float(reward) == float(earned)
        assert bool(terminated | truncated) == bool(done) == (t in (SHORT, SHORT + 5))
        assert bool(truncated) == (t == SHORT)
        if done:
            assert not np.array_equal(final, obs)
            np.testing.assert_array_equal(obs, see(state))
        else:
            np.testing.assert_array_equal(final, obs)


def test_names_and_presets():
    family = families.find(NAME)
    assert family.canonical("Craftax-Classic-Symbolic-AutoReset-v1") == NAME
    assert family.canonical("Craftax-Pixels-v1") == "Craftax-Pixels-v1"
    assert family.preset("Craftax-Pixels-v1") == "minatar"
    with pytest.raises(SurveyorError, match="did you mean 'Craftax-Symbolic-v1'"):
        family.canonical("Craftax-Symbolik-v1")
