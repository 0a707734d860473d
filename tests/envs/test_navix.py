"""Navix by name, with Navix itself as the oracle, and MiniGrid for time limits."""

from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401  registers its grids
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
    env = Functional.wrap(Timesteps(oracle, name))
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


@pytest.mark.parametrize(
    ("grid", "steps"),
    [
        ("Empty-8x8", 256),
        ("Empty-16x16", 1024),
        ("DoorKey-5x5", 250),
        ("DoorKey-6x6", 360),
        ("DoorKey-8x8", 640),
        ("FourRooms", 100),
        ("SimpleCrossingS9N1", 324),
        ("KeyCorridorS3R1", 270),
    ],
)
def test_the_time_limit_is_minigrid_s_or_navix_s_own(grid, steps):
    oracle: Any = gymnasium.make(f"MiniGrid-{grid}-v0").unwrapped
    assert oracle.max_steps == steps
    name = f"Navix-{grid}-v0"
    family = families.find(name)
    for protocol, limit in ((None, steps), ("minigrid", steps), ("navix", 100)):
        assert family.make(name, protocol).inner.env.max_steps == limit


def test_names_and_the_family():
    family = families.find("Navix-Empty-8x8-v0")
    env = family.make("Navix-Empty-8x8-v0", None)
    assert (family.name, env.spec.dtype, env.spec.shape) == ("Navix", "uint8", (8, 8, 3))
    high = env.inner.observation_space().high
    np.testing.assert_array_equal(high, np.broadcast_to((10, 5, 3), (8, 8, 3)))
    assert env.spec.bounds == ((0, 10), (0, 5), (0, 3))
    assert env.spec.codes == (11, 6, 4)
    assert (family.preset("Navix-Empty-8x8-v0"), tuple(family.protocols)) == (
        "grid",
        ("minigrid", "navix"),
    )
    with pytest.raises(SurveyorError, match="did you mean 'Navix-Empty-8x8-v0'"):
        family.canonical("Navix-Emty-8x8-v0")
