"""Uniform exploration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.agents.uniform import Uniform, median_episodes
from surveyor.types import EnvSpec
from tests.common import SMALL, VECTOR, observations


def test_the_median_of_uniform_exploration():
    np.testing.assert_allclose(median_episodes(1), 1.0)
    p = 2.0**-10
    np.testing.assert_allclose((1 - p) ** median_episodes(10), 0.5)
    np.testing.assert_allclose(median_episodes(60), np.log(2) * 2.0**60)


def test_every_action_is_equally_likely():
    agent = Uniform()
    state = agent.init(EnvSpec(4, 3, 2), jax.random.key(0))
    u = jax.random.uniform(jax.random.key(1), (9000, 3))
    actions = jax.vmap(lambda u: agent.act(state, None, jnp.int32(0), u))(u)
    np.testing.assert_allclose(np.bincount(actions, minlength=3), 3000, rtol=0.06)
    np.testing.assert_array_equal(agent.q(state, None, jnp.arange(2)), np.zeros((2, 3)))


@pytest.mark.parametrize("spec", [VECTOR, SMALL])
def test_q_is_a_row_for_each_observation_whatever_its_shape(spec):
    agent = Uniform()
    state = agent.init(spec, jax.random.key(0))
    assert agent.q(state, None, observations(spec, 5)).shape == (5, 3)
    assert agent.q(state, None, observations(spec, 5)[0]).shape == (3,)
