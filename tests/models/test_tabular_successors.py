"""The tabular network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.networks import Shared, TabularNetwork
from surveyor.types import EnvSpec


def network(**changes):
    options = {
        "features": 4, "actions": 2, "novelty": 0, "layers": "two", "normalise": False,
        "psi_init": 1.0,
    }  # fmt: skip
    return TabularNetwork(**{**options, **changes})


def test_two_layers_by_hand():
    net = network(features=2)
    V = jnp.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0], [2.0, 0.0]]])
    shared = Shared(jnp.zeros(2), jnp.array([0.0, 1.0]), V, jnp.array([[0.0, 0.0], [0.5, 0.5]]))
    hidden, action = jnp.array([[2.0, -3.0], [2.0, 1.0]]), jnp.array([0, 1])
    # ReLU((2, -2)) = (2, 0), times the identity; (2, 2) through the second: (2+4+.5, -2+.5).
    np.testing.assert_allclose(net.phi(hidden, action, shared), [[2.0, 0.0], [6.5, 0.0]])


def test_one_layer_by_hand():
    net = network(features=2, layers="one")
    V = jnp.array([[[1.0, 1.0]], [[-5.0, 2.0]]])
    shared = Shared(jnp.zeros(2), jnp.zeros(2), V, jnp.zeros((2, 2)))
    phi = net.phi(jnp.array([[3.0, -4.0], [3.0, -1.0]]), jnp.array([0, 1]), shared)
    np.testing.assert_allclose(phi, [[4.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("layers", ["one", "two"])
def test_normalised_features_are_non_negative_unit_vectors(layers):
    net = network(layers=layers, normalise=True)
    hidden, _, shared = net.init(EnvSpec(50, 2, 10), jax.random.key(0))
    action = jnp.arange(50) % 2
    phi = net.phi(hidden, action, shared)
    assert np.all(np.asarray(phi) >= 0)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1.0, rtol=1e-5)


def test_psi_starts_at_its_initial_value_everywhere_without_novelty():
    net = network(psi_init=0.7)
    _, psi, shared = net.init(EnvSpec(3, 2, 10), jax.random.key(0))
    np.testing.assert_allclose(net.psi(psi), np.full((3, 2, 4), 0.7))
    np.testing.assert_array_equal(shared.w, np.zeros(4))


def test_novelty_features_are_those_that_phi_never_has():
    net = network(novelty=3)
    hidden, psi, shared = net.init(EnvSpec(5, 2, 10), jax.random.key(0))
    np.testing.assert_allclose(net.psi(psi)[2, 1], [1, 1, 1, 0])
    phi = net.phi(hidden, jnp.zeros(5, jnp.int32), shared)
    assert phi.shape == (5, 1)
    assert np.all(np.asarray(phi) > 0)


def test_the_fast_gradient_is_the_gradient():
    from surveyor.models.networks import linear

    x, W = jax.random.normal(jax.random.key(0), (7, 3)), jnp.arange(6.0).reshape(3, 2)
    fast = jax.grad(lambda x, W: jnp.sum(jnp.sin(linear(x, W))), (0, 1))(x, W)
    plain = jax.grad(lambda x, W: jnp.sum(jnp.sin(x @ W)), (0, 1))(x, W)
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
