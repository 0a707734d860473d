"""Objectives against equation 4 in NumPy, and the gradients that each option lets through."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.losses import Equation4, Targets, Weighted
from surveyor.models.successors import Outputs
from surveyor.types import Batch, Trail

RNG = np.random.default_rng(0)
PSI, PHI, NEXT = (RNG.normal(size=(6, 4)) for _ in range(3))
W, REWARD, NEXT_Q = RNG.normal(size=4), RNG.normal(size=6), RNG.normal(size=6)
WEIGHT = RNG.uniform(0.2, 1, size=6)


def single(array):
    return jnp.asarray(array, jnp.float32)


def batch(**more):
    integers = jnp.zeros(6, jnp.int32)
    return Batch(integers, integers, single(REWARD), integers, integers > 0, integers, **more)


def outputs(w=W, trained=None):
    return Outputs(single(PSI), single(PHI), single(w), trained)


TARGETS = Targets(single(NEXT), single(NEXT_Q))


def smooth(error):
    size = np.abs(error)
    return np.where(size < 1, error**2 / 2, size - 0.5)


def gradients(objective, given=None, data=None):
    """Return ∂/∂ψ, ∂/∂φ and ∂/∂w of an objective."""
    given = outputs() if given is None else given
    data = batch() if data is None else data

    def value(psi, phi, w):
        return objective(data, TARGETS, Outputs(psi, phi, w, given.trained))[0]

    return jax.grad(value, (0, 1, 2))(*given[:3])


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


def test_ours_is_smooth_with_a_weight_on_the_third_term():
    loss, update = Weighted(10.0, False, False)(batch(), TARGETS, outputs())
    terms = [np.mean(smooth(ERRORS)), np.mean(MISSED**2), np.mean(smooth(OFF))]
    assert float(loss) == pytest.approx(terms[0] + terms[1] + 10 * terms[2], rel=1e-5)
    names = ("successor_loss", "reward_loss", "q_loss")
    np.testing.assert_allclose([update.metrics[name] for name in names], terms, rtol=1e-5)


def test_the_q_loss_trains_w_only_if_asked():
    slope = np.clip(OFF, -1, 1)
    for trains in (False, True):
        of_w = gradients(Weighted(10.0, False, trains))[2]
        expected = 2 * MISSED @ PHI / 6 + (10 * slope @ PSI / 6 if trains else 0)
        np.testing.assert_allclose(of_w, expected, rtol=1e-4, atol=1e-5)


def test_ours_never_trains_phi_by_the_successor_loss():
    of_phi = gradients(Weighted(10.0, False, True))[1]
    np.testing.assert_allclose(of_phi, 2 * MISSED[:, None] * W / 6, rtol=1e-4, atol=1e-6)


def test_the_successor_loss_trains_only_the_leading_features_if_asked():
    given = outputs(np.zeros(4), trained=2)  # with w = 0 the Q loss trains no ψ
    of_psi = np.asarray(gradients(Weighted(1.0, False, False), given)[0])
    np.testing.assert_allclose(of_psi[:, :2], np.clip(ERRORS, -1, 1)[:, :2] / 12, rtol=1e-4)
    np.testing.assert_array_equal(of_psi[:, 2:], 0)


@pytest.mark.parametrize(("scale", "size"), [(0.5, 0.25), (0.01, 0.01)])
def test_the_q_loss_can_be_counted_in_units_of_features(scale, size):
    """Divided by ‖ŵ‖², or by 0.01 where that is less, without a gradient of its own."""
    w = scale * np.array([1.0, 0, 0, 0])
    divided, plain = (
        gradients(objective, outputs(w))
        for objective in (Weighted(3.0, True, True), Weighted(3.0 / size, False, True))
    )
    for a, b in zip(divided, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_over_several_steps_w_learns_the_reward_of_the_first():
    trail = Trail(jnp.zeros((6, 1)), jnp.zeros((6, 1), jnp.int32), jnp.ones((6, 1)), jnp.zeros(6))
    _, update = Weighted(1.0, False, False)(batch(trail=trail), TARGETS, outputs())
    assert float(update.metrics["reward_loss"]) == pytest.approx(np.mean((PHI @ W) ** 2), rel=1e-5)
    assert float(update.metrics["q_loss"]) == pytest.approx(np.mean(smooth(OFF)), rel=1e-5)
