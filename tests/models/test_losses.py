"""The three terms of equation 4, with numbers worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.losses import penalty, q_loss, reward_loss, successor_loss

W = jnp.array([2.0, -1.0])
PHI = jnp.array([0.6, 0.8])
PSI = jnp.array([1.0, 3.0])
NEXT = jnp.array([0.5, 0.2])


def test_successor_loss():
    """ψ - φ - y = (-0.1, 2.0): squared 0.01 + 4; smooth-L1 0.005 and 1.5."""
    assert successor_loss(PSI, PHI, NEXT) == pytest.approx(4.01)
    assert successor_loss(PSI, PHI, NEXT, "squared", "mean") == pytest.approx(2.005)
    assert successor_loss(PSI, PHI, NEXT, "smooth_l1", "sum") == pytest.approx(1.505)


def test_reward_loss():
    """⟨w, φ⟩ = 1.2 - 0.8 = 0.4, against a reward of 1."""
    assert reward_loss(W, PHI, jnp.array(1.0)) == pytest.approx(0.36)


def test_q_loss():
    """⟨w, ψ⟩ = 2 - 3 = -1, against 1 + 0.5."""
    assert q_loss(W, PSI, jnp.array(1.0), jnp.array(0.5)) == pytest.approx(6.25)
    assert q_loss(W, PSI, jnp.array(1.0), jnp.array(0.5), "smooth_l1") == pytest.approx(2.0)


def test_smooth_l1_is_continuous_and_even():
    errors = jnp.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
    expected = [1.5, 0.5, 0.125, 0.0, 0.125, 0.5, 1.5]
    np.testing.assert_allclose(penalty(errors, "smooth_l1"), expected)
