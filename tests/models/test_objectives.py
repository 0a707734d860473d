"""Objectives against equation 4 in NumPy, and the gradients that each option lets through."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.losses import Equation4, Targets
from surveyor.models.successors import Outputs
from surveyor.types import Batch

RNG = np.random.default_rng(0)
PSI, PHI, NEXT = (RNG.normal(size=(6, 4)) for _ in range(3))
W, REWARD, NEXT_Q = RNG.normal(size=4), RNG.normal(size=6), RNG.normal(size=6)
WEIGHT = RNG.uniform(0.2, 1, size=6)


def single(array):
    return jnp.asarray(array, jnp.float32)


def batch(**more):
    integers = jnp.zeros(6, jnp.int32)
    return Batch(integers, integers, single(REWARD), integers, integers > 0, integers, **more)


def outputs():
    return Outputs(single(PSI), single(PHI), single(W))


TARGETS = Targets(single(NEXT), single(NEXT_Q))


def smooth(error):
    size = np.abs(error)
    return np.where(size < 1, error**2 / 2, size - 0.5)


def gradients(objective):
    """Return ∂/∂ψ, ∂/∂φ and ∂/∂w of an objective."""

    def value(*given):
        return objective(batch(), TARGETS, Outputs(*given))[0]

    return jax.grad(value, (0, 1, 2))(*outputs())


ERRORS = PSI - PHI - NEXT
OFF = PSI @ W - REWARD - NEXT_Q
MISSED = PHI @ W - REWARD


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_equation_4_is_the_sum_of_its_three_terms(weight):
    data = batch(weight=None if weight is None else single(weight))
    mean = lambda losses: np.mean(losses if weight is None else weight * losses)  # noqa: E731
    squared, update = Equation4("squared", True)(data, TARGETS, outputs())
    terms = [mean(np.sum(ERRORS**2, axis=1)), mean(MISSED**2), mean(OFF**2)]
    assert float(squared) == pytest.approx(sum(terms), rel=1e-5)
    names = ("successor_loss", "reward_loss", "q_loss")
    np.testing.assert_allclose([update.metrics[name] for name in names], terms, rtol=1e-5)
    np.testing.assert_allclose(update.errors, OFF, rtol=1e-4, atol=1e-6)
    released, _ = Equation4("smooth_l1", False)(data, TARGETS, outputs())
    terms = [mean(np.mean(smooth(ERRORS), axis=1)), mean(MISSED**2), mean(smooth(OFF))]
    assert float(released) == pytest.approx(sum(terms), rel=1e-5)


def test_the_successor_loss_trains_phi_in_the_text_and_not_in_the_released_code():
    text, released = (gradients(Equation4("squared", trains)) for trains in (True, False))
    of_reward = 2 * MISSED[:, None] * W / 6
    np.testing.assert_allclose(released[1], of_reward, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(text[1], of_reward - 2 * ERRORS / 6, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(text[0], released[0])
    np.testing.assert_allclose(
        text[0], (2 * ERRORS + 2 * OFF[:, None] * W) / 6, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(text[2], 2 * (MISSED @ PHI + OFF @ PSI) / 6, rtol=1e-4, atol=1e-6)
