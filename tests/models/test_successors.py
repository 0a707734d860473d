"""Parts of every successor model."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.models.successors import unit


def test_a_unit_vector_of_nothing_is_nothing_and_has_a_gradient():
    phi = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(unit(phi), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert np.all(np.isfinite(jax.grad(lambda phi: jnp.sum(unit(phi)))(phi)))
