"""Targets and the three terms of equation 4, with numbers worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.losses import (
    bootstrap_factor,
    penalty,
    q_loss,
    reward_loss,
    successor_loss,
    td_target,
    weighted_mean,
)
from surveyor.types import Batch

W = jnp.array([2.0, -1.0])
PHI = jnp.array([0.6, 0.8])
PSI = jnp.array([1.0, 3.0])
NEXT = jnp.array([0.5, 0.2])


def test_successor_loss():
    """ψ - φ - y = (-0.1, 2.0): squared 0.01 + 4, summed; smooth-L1 0.005 and 1.5, averaged."""
    assert successor_loss(PSI, PHI, NEXT) == pytest.approx(4.01)
    assert successor_loss(PSI, PHI, NEXT, "smooth_l1") == pytest.approx(0.7525)


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


def batch(**more):
    """Two transitions with rewards 1 and 2, of which the second ends its episode."""
    integers = jnp.zeros(2, jnp.int32)
    ended = jnp.array([False, True])
    return Batch(integers, integers, jnp.array([1.0, 2.0]), integers, ended, integers, **more)


def test_a_target_has_the_discounted_value_of_what_follows_and_nothing_at_the_end():
    np.testing.assert_allclose(bootstrap_factor(batch(), 0.5), [0.5, 0.0])
    values = jnp.array([[4.0, 8.0], [4.0, 8.0]])
    np.testing.assert_allclose(td_target(batch(), 0.5, values), [[3.0, 5.0], [2.0, 2.0]])


def test_a_return_over_three_steps_discounts_by_the_cube():
    several = batch(discount=jnp.array([0.125, 0.125]))
    np.testing.assert_allclose(bootstrap_factor(several, 0.5), [0.125, 0.0])


def test_weights_multiply_each_loss_before_the_mean():
    losses = jnp.array([2.0, 6.0])
    assert weighted_mean(losses, batch()) == pytest.approx(4.0)
    assert weighted_mean(losses, batch(weight=jnp.array([1.0, 0.5]))) == pytest.approx(2.5)
