"""Successor features on networks: heads, norms, random waves, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.deep_successors import DeepSuccessors
from surveyor.models.optimiser import Adam
from surveyor.models.successors import SuccessorModel
from tests.common import SMALL, observations


def model(spec=SMALL, **changes):
    options = {"features": 16, "hidden": 32, "adam": Adam(1e-2), "target_every": 2, **changes}
    return jax.jit(lambda key: DeepSuccessors.create(spec, key, **options))(jax.random.key(0))


def numbers(array):
    return np.asarray(array, np.float64)


@pytest.fixture(scope="module")
def plain():
    return model()


def test_the_heads_are_those_of_appendix_c(plain):
    net, obs = plain.trained.net, observations(SMALL, 4)
    hidden = numbers(net.torso(obs)).T
    both = (hidden @ numbers(net.psi.weight).T + numbers(net.psi.bias)).reshape(4, 4, 16)
    np.testing.assert_allclose(plain.psi(obs), both[:, :1] + both[:, 1:], rtol=1e-4, atol=1e-5)
    action = jnp.array([0, 1, 2, 1])
    phi = hidden @ numbers(net.phi.weight).T + numbers(net.phi.bias)
    phi = np.maximum(phi, 0).reshape(4, 3, 16)[np.arange(4), action]
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    np.testing.assert_allclose(plain.phi(obs, action), phi, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(plain.w, 0)
    assert isinstance(plain, SuccessorModel)


def test_the_released_heads_share_a_norm_and_are_never_negative(plain):
    released = model(psi_relu=True, normalise="together")  # the same weights, from the same key
    obs = observations(SMALL, 4)
    psi = np.asarray(plain.psi(obs))
    assert psi.min() < 0
    np.testing.assert_allclose(released.psi(obs), np.maximum(psi, 0), rtol=1e-5)
    every = [released.phi(obs, jnp.full(4, a)) for a in range(3)]
    np.testing.assert_allclose(np.sum(np.square(every), axis=(0, 2)), 1.0, rtol=1e-5)
    for a, phi in enumerate(every):  # each points where it did
        cosine = np.sum(phi * np.asarray(plain.phi(obs, jnp.full(4, a))), axis=1)
        np.testing.assert_allclose(cosine, np.linalg.norm(phi, axis=1), rtol=1e-4)


def test_features_that_are_not_normalised_are_as_long_as_they_come(plain):
    free, obs, action = model(normalise="none"), observations(SMALL, 4), jnp.arange(4) % 3
    phi = numbers(free.phi(obs, action))
    lengths = np.linalg.norm(phi, axis=1, keepdims=True)
    assert np.ptp(lengths) > 0.1
    np.testing.assert_allclose(plain.phi(obs, action), phi / lengths, rtol=1e-4, atol=1e-5)


def test_psi_starts_around_its_bias(plain):
    obs = observations(SMALL, 4)
    higher = numbers(model(psi_init=3.0).psi(obs))
    np.testing.assert_allclose(higher, numbers(plain.psi(obs)) + 3.0, rtol=1e-4, atol=1e-4)


def test_steps_go_downhill_and_the_target_network_follows_late(plain):
    obs, action = observations(SMALL, 8), jnp.arange(8) % 3
    first = plain.target_psi(obs)

    def loss(outputs):
        return jnp.mean((outputs.psi - 1) ** 2) + jnp.sum((outputs.w - 1) ** 2), outputs.psi

    fit, new, losses = jax.jit(lambda m: m.fit(obs, action, loss)), plain, []
    for step in range(1, 21):
        new, psi = fit(new)
        losses.append(float(np.mean((np.asarray(psi) - 1) ** 2)))
        if step == 1:
            np.testing.assert_array_equal(new.target_psi(obs), first)
            np.testing.assert_array_equal(new.target_w, 0)
            np.testing.assert_allclose(new.w, 0.01, rtol=1e-4)  # Adam's first step
        if step == 2:
            np.testing.assert_array_equal(new.target_psi(obs), new.psi(obs))
            np.testing.assert_array_equal(new.target_w, new.w)
    assert losses[-1] < 0.5 * losses[0]
