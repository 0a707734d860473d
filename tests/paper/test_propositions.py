"""The propositions' own arithmetic, and that a false prediction is found out."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.paper import checks, propositions
from surveyor.paper.checks import Check, geometric_median, pieces, share


def test_intervals_are_exact():
    p, low, high = share(3, 10)
    assert p == 0.3
    assert low == pytest.approx(0.0667, abs=1e-4)
    assert high == pytest.approx(0.6525, abs=1e-4)
    assert share(0, 10)[1] == 0.0
    assert share(10, 10)[2] == 1.0


def test_a_prediction_that_does_not_hold_says_so():
    assert not Check("1", "", "≤", 0.1, 0.5, 0.4, 0.6).holds
    assert not Check("1", "", "=", 0.1, 0.5, 0.4, 0.6).holds
    assert not Check("1", "", ">", 0.5, 0.5, 0.4, 0.6).holds
    assert not Check("1", "", "≠", 0.5, 0.5, 0.4, 0.6).holds
    assert Check("1", "", "≤", 0.45, 0.5, 0.4, 0.6).holds


def test_numbers_by_hand():
    assert geometric_median(0.5) == 1.0
    assert geometric_median(0.0) == math.inf
    assert sum(pieces(45_000)) == 45_000
    assert propositions.epsilon(1) == pytest.approx(
        0.75 * math.exp(-1 / 50) + 0.25 * math.exp(-0.175)
    )


def test_the_variance_condition_after_one_visit_is_a_coin():
    """One visit: the action that was not taken keeps the prior's variance and wins."""
    upward = propositions.upward(1, 20_000, np.random.default_rng(0))
    assert abs(upward.mean() - 0.5) < 0.02


def test_variances_of_the_exact_model_agree_with_the_recursion():
    agent, state = propositions.explored(4, 40, np.random.default_rng(1))
    belief = agent.q_posterior(state, jnp.arange(0, 8, 2))
    nu = np.asarray(agent.variance(state), float)[::2]
    variance = 0.0
    for k in range(3, -1, -1):
        up = nu[k, 0] + (0.25 * (variance + nu[k + 1, 1]) if k < 3 else 0.0)
        variance = up
        assert belief.covariance[2 * k, 2 * k] == pytest.approx(up, rel=1e-4)


@pytest.mark.parametrize("measure", [propositions.proposition_2, propositions.propositions_4_and_5])
def test_they_hold(measure):
    assert all(check.holds for check in measure(np.random.default_rng(0), 20_000))


def test_a_joint_belief_would_break_proposition_1():
    """The check is not vacuous: with one shared draw the sequence has probability one half."""
    noise = np.random.default_rng(0).standard_normal((20_000, 1))
    found = int(np.all(np.repeat(noise, 8, axis=1) > 0, axis=1).sum())
    assert not Check("1", "shared", "≤", 2.0**-8, *share(found, 20_000)).holds


def test_the_picture_has_a_panel_for_each_group(tmp_path):
    points = [Check("1", "", "≤", 0.5, 0.4, 0.3, 0.45), Check("1", "", "≤", 0.01, 0.0, 0.0, 0.01)]
    text = checks.draw({"first": points, "second": points}, tmp_path / "x.svg").read_text("utf-8")
    assert "<!-- first -->" in text
    assert "<!-- second -->" in text
    assert "<!-- measured -->" in text


@pytest.mark.slow
def test_ube_is_bound_by_proposition_1_before_it_has_seen_a_reward():
    p, low, high = propositions._ube_successes(3, 20_000)
    assert low <= 2.0**-3 <= high, p
