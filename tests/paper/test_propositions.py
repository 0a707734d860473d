"""The propositions' own arithmetic, and that a false prediction is found out."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.paper import checks, propositions
from surveyor.paper.checks import Check, compared, geometric_median, pieces, share
from surveyor.paper.options import Options


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


def test_proposition_2_shows_the_estimate_itself_as_predicted():
    rng, draws = np.random.default_rng(0), 20_000
    agent, state = propositions.explored(3, 12, rng)
    belief = agent.q_posterior(state, jnp.arange(0, 6, 2))
    root = np.linalg.cholesky(np.asarray(belief.covariance, float) + 1e-9 * np.eye(6))
    noise = rng.standard_normal((draws, 6))
    q = np.asarray(belief.mean, float).reshape(-1) + noise @ root.T
    expected = np.mean(q[:, 0::2] > q[:, 1::2], axis=0)
    found = list(propositions.proposition_2(np.random.default_rng(0), draws))
    assert [check.predicted for check in found[:3]] == list(expected)
    assert all(check.predicted != check.measured for check in found)


def test_the_error_of_an_estimated_prediction_widens_the_interval():
    measured, low, high = share(5_000, 10_000)
    for expected, overlap in ((5_120, True), (4_880, True), (5_210, False), (4_790, False)):
        predicted, least, most = share(expected, 10_000)
        found = compared(expected, 5_000, 10_000)
        assert found[:2] == (predicted, measured)
        assert not low <= predicted <= high
        assert (low <= most and least <= high) == overlap
        assert Check("2", "", "=", *found).holds == overlap
        assert Check("2", "", "≠", *found).holds != overlap


def test_the_table_says_which_intervals_are_wider(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(propositions, "_ube_successes", lambda length, draws: (0.0, 0.0, 0.1))
    propositions.run(Options(quick=True, out=tmp_path))
    text = (tmp_path / "propositions.md").read_text("utf-8")
    assert "The intervals beside them are wider by the error of these estimates." in text
    data = {
        check["case"]: check for check in json.loads((tmp_path / "propositions.json").read_text())
    }
    check = data["P(action 0) in s_4"]
    assert f"| = {check['predicted']:.4g} | {check['measured']:.4g} |" in text
    assert abs(check["predicted"] - check["measured"]) > 1e-3


def test_a_joint_belief_would_break_proposition_1():
    """The check is not vacuous: with one shared draw the sequence has probability one half."""
    noise = np.random.default_rng(0).standard_normal((20_000, 1))
    found = int(np.all(np.repeat(noise, 8, axis=1) > 0, axis=1).sum())
    assert not Check("1", "shared", "≤", 2.0**-8, *share(found, 20_000)).holds


def test_the_picture_has_a_panel_for_each_group(tmp_path):
    points = [Check("1", "", "≤", 0.5, 0.4, 0.3, 0.45), Check("1", "", "≤", 0.01, 0.0, 0.0, 0.01)]
    text = checks.draw({"first": points, "second": points}, tmp_path / "x.svg").read_text("utf-8")
    assert ">first</text>" in text
    assert ">second</text>" in text
    assert ">measured</text>" in text


@pytest.mark.slow
def test_ube_is_bound_by_proposition_1_before_it_has_seen_a_reward():
    p, low, high = propositions._ube_successes(3, 20_000)
    assert low <= 2.0**-3 <= high, p
