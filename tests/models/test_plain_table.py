"""Plain tables: how far a step goes."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from surveyor.models.plain_table import PlainTable
from surveyor.types import Batch, EnvSpec


def test_a_plain_table_goes_its_rate_towards_the_mean_target_of_each_pair():
    table = PlainTable.create(EnvSpec(3, 2), jnp.array([0.0, 0.5]), 0.4)
    np.testing.assert_array_equal(table.q(jnp.int32(2)), [[0, 0], [0.5, 0.5]])
    integers = jnp.array([1, 1, 0])
    data = Batch(integers, jnp.array([0, 0, 1]), jnp.zeros(3), integers, integers > 5, integers)
    targets = jnp.array([[0.2, 0.7], [0.6, 0.9], [-3.0, 0.5]])
    after, update = table.fit(data, targets, "smooth_l1")
    expected = np.array([[[0, -0.4], [0.5, 0.5]], [[0.16, 0], [0.62, 0.5]], [[0, 0], [0.5, 0.5]]])
    np.testing.assert_allclose(after.q(jnp.arange(3)), expected, atol=1e-6)  # an error of 3 is 1
    np.testing.assert_allclose(update.errors, [-0.2, -0.5, 1.5], atol=1e-6)
    squared, _ = table.fit(
        dataclasses.replace(data, weight=jnp.array([1.0, 1.0, 0.5])), targets, "squared"
    )
    expected[0, 0, 1] = -0.2 * 3  # all of an error, and half of the weight
    np.testing.assert_allclose(squared.q(jnp.arange(3)), expected, atol=1e-6)
