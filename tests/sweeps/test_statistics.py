"""Against rliable's own numbers, which were computed once."""

import json
from pathlib import Path

import numpy as np
import pytest

from surveyor.sweeps import statistics

SETS = json.loads((Path(__file__).parents[1] / "fixtures" / "rliable.json").read_text())["sets"]


@pytest.mark.parametrize("name", SETS)
def test_interquartile_mean_profile_and_intervals_are_those_of_rliable(name):
    known = SETS[name]
    scores, levels = np.array(known["scores"]), np.array(known["taus"])
    assert statistics.iqm(scores) == pytest.approx(known["iqm"], rel=1e-12)
    assert np.mean(scores) == pytest.approx(known["mean"], rel=1e-12)
    width = np.ptp(known["iqm_interval"])
    found = statistics.interval(scores, statistics.iqm)
    np.testing.assert_allclose(found, known["iqm_interval"], atol=0.06 * width)
    found = statistics.interval(scores, np.mean)
    np.testing.assert_allclose(found, known["mean_interval"], atol=0.06 * width)
    np.testing.assert_allclose(statistics.profile(scores, levels), known["profile"], atol=1e-12)
    found = statistics.profile_interval(scores, levels)
    np.testing.assert_allclose(found, known["profile_interval"], atol=1.01 / scores.size)


def test_the_interval_of_curves_covers_their_mean():
    rng = np.random.default_rng(0)
    curves = rng.normal(size=(12, 50))
    low, high = statistics.curve_interval(curves)
    assert np.all((low < curves.mean(0)) & (curves.mean(0) < high))
    expected = 2 * 1.96 * curves.std(0) / 12**0.5
    np.testing.assert_allclose(high - low, expected, rtol=0.25)
    assert np.mean((low < 0) & (high > 0)) > 0.8
