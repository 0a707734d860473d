"""Navix by name, with Navix itself as the oracle."""

import equinox as eqx
import jax
import jax.numpy as jnp
import navix
import numpy as np
import pytest

from surveyor.envs import families
from surveyor.envs.functional import Functional
from surveyor.envs.stepping import Timesteps
from surveyor.errors import SurveyorError

KEY = jax.random.key(4)


OBSTACLES = "Navix-Dynamic-Obstacles-5x5-v0"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("Navix-Empty-Random-5x5-v0", {"termination", "truncation"}),
        pytest.param(OBSTACLES, {"termination"}, marks=pytest.mark.slow),
    ],
)
def test_step_by_step_the_same_as_navix(name, kinds):
    oracle = navix.make(name, max_steps=20)
    env = Functional.wrap(Timesteps(oracle, name, 10))
    assert env.spec.shape == (5, 5, 3)
    assert (env.spec.num_states, env.spec.num_actions) == (0, 7)
    obs, state = env.reset(KEY)
    expected = oracle.reset(jax.random.key_data(KEY))
    step, other = eqx.filter_jit(env.step), jax.jit(oracle.step)
    ends = set()
    rng = np.random.default_rng(0)
    for _ in range(120):
        np.testing.assert_array_equal(obs, expected.observation)
        action = jnp.int32(rng.integers(3))
        obs, state, reward, terminated, truncated, final = step(KEY, state, action)
        expected = other(expected, action)
        np.testing.assert_array_equal(final, expected.observation)
        assert float(reward) == float(expected.reward)
        assert bool(terminated) == bool(expected.is_termination())
        assert bool(truncated) == bool(expected.is_truncation())
        if expected.is_done():  # Navix resets at its next step, whatever the action
            ends.add("termination" if terminated else "truncation")
            expected = other(expected, action)
    assert ends == kinds
    assert max(int(leaf.nbytes) for leaf in jax.tree.leaves(state)) < 1000  # no drawn tiles


def test_names_and_the_family():
    family = families.find("Navix-Empty-8x8-v0")
    env = family.make("Navix-Empty-8x8-v0", None)
    assert (family.name, env.spec.dtype, env.spec.shape) == ("Navix", "uint8", (8, 8, 3))
    assert env.inner.observation_space().high == 10
    with pytest.raises(SurveyorError, match="did you mean 'Navix-Empty-8x8-v0'"):
        family.canonical("Navix-Emty-8x8-v0")
