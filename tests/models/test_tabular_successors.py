"""Successor features of numbered states, by hand and against Adam in float64."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.successors import SuccessorModel
from surveyor.models.tables import Table
from surveyor.models.tabular_successors import Shared, TabularSuccessors
from surveyor.types import EnvSpec
from tests.common import compiled

SPEC = EnvSpec(5, 2, 10)


def model(spec=SPEC, features=4, **changes):
    options = {"layers": "two", "normalise": False, "features": features, "psi_init": 1.0}
    options = {**options, "learning_rate": 1e-2, **changes}
    return jax.jit(lambda key: TabularSuccessors.create(spec, key, **options))(jax.random.key(0))


def with_parameters(model, hidden, shared):
    """Put U_s of every state and the shared parameters into a model."""
    psi = compiled(model.psi)(jnp.arange(len(hidden))).reshape(len(hidden), -1)
    rows = Table.create(jnp.concatenate([psi, jnp.asarray(hidden)], axis=1))
    return eqx.tree_at(lambda model: (model.rows, model.shared), model, (rows, shared))


def test_two_layers_by_hand():
    V = jnp.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0], [2.0, 0.0]]])
    shared = Shared(jnp.zeros(2), jnp.array([0.0, 1.0]), V, jnp.array([[0.0, 0.0], [0.5, 0.5]]))
    filled = with_parameters(model(features=2), [[2.0, -3.0], [2.0, 1.0]], shared)
    # ReLU((2, -2)) = (2, 0), times the identity; (2, 2) through the second: (2+4+.5, -2+.5).
    phi = compiled(filled.phi)(jnp.array([0, 1]), jnp.array([0, 1]))
    np.testing.assert_allclose(phi, [[2.0, 0.0], [6.5, 0.0]])


def test_one_layer_by_hand():
    V = jnp.array([[[1.0, 1.0]], [[-5.0, 2.0]]])
    shared = Shared(jnp.zeros(2), jnp.zeros(2), V, jnp.zeros((2, 2)))
    filled = with_parameters(model(features=2, layers="one"), [[3.0, -4.0], [3.0, -1.0]], shared)
    phi = compiled(filled.phi)(jnp.array([0, 1]), jnp.array([0, 1]))
    np.testing.assert_allclose(phi, [[4.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("layers", ["one", "two"])
def test_normalised_features_are_non_negative_unit_vectors(layers):
    net = model(EnvSpec(50, 2, 10), layers=layers, normalise=True)
    phi = compiled(net.phi)(jnp.arange(50), jnp.arange(50) % 2)
    assert np.all(np.asarray(phi) >= 0)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1.0, rtol=1e-5)


def test_psi_starts_at_its_initial_value_everywhere_and_w_at_zero():
    net = model(psi_init=0.7)
    np.testing.assert_allclose(compiled(net.psi)(jnp.arange(3)), np.full((3, 2, 4), 0.7))
    np.testing.assert_array_equal(net.w, np.zeros(4))
    np.testing.assert_array_equal(net.target_w, net.w)
    np.testing.assert_array_equal(
        compiled(net.target_psi)(jnp.arange(3)), compiled(net.psi)(jnp.arange(3))
    )


def test_any_shape_of_observations_is_looked_up_one_by_one():
    net, obs = model(), jnp.array([[0, 1, 2], [3, 4, 0]])
    action = jnp.array([[0, 1, 1], [0, 0, 1]])
    assert compiled(net.psi)(obs).shape == (2, 3, 2, 4)
    phi = compiled(net.phi)(obs, action)
    assert phi.shape == (2, 3, 4)
    np.testing.assert_allclose(
        phi[1, 2], compiled(net.phi)(obs[1, 2:], action[1, 2:])[0], rtol=1e-5
    )


def test_a_step_moves_what_the_loss_reads_by_adam_and_nothing_else():
    """Adam's first step is the learning rate against the sign of each gradient."""
    net = model(psi_init=0.5)
    target = jnp.array([1.0, 0.0, 0.5, 2.0])

    def loss(outputs):
        return jnp.sum((outputs.psi - target) ** 2) + jnp.sum(outputs.w), outputs.psi

    new, psi = compiled(lambda net: net.fit(jnp.array([1, 1]), jnp.array([0, 0]), loss))(net)
    np.testing.assert_array_equal(psi, np.full((2, 4), 0.5))  # what was found before the step
    after = np.array(compiled(new.psi)(jnp.arange(5)))
    np.testing.assert_allclose(after[1, 0], [0.51, 0.49, 0.5, 0.51], rtol=1e-5)
    after[1, 0] = 0.5
    np.testing.assert_array_equal(after, 0.5)
    np.testing.assert_allclose(new.w, -0.01, rtol=1e-5)
    both = [compiled(m.phi)(jnp.arange(5), jnp.ones(5, jnp.int32)) for m in (net, new)]
    np.testing.assert_array_equal(*both)
    assert isinstance(new, SuccessorModel)
