"""What the runs of a folder came to."""

import dataclasses

import numpy as np

from surveyor.sweeps import pictures, spec, statistics, summary
from surveyor.sweeps.status import RunStatus
from surveyor.sweeps.summary import Curve


def statuses(*entries):
    """Runs that have ended, without files."""
    return [
        RunStatus(run.config.name, "su", "done", config=run.config)
        for episodes in entries
        for run in spec.plan({"seeds": 2, "envs": ["Tree-4"], "agents": [episodes]}, "it")
    ]


def curve(score, budget=100):
    return Curve(np.array([float(budget)]), np.array([float(score)]), budget)


def test_runs_that_differ_under_one_label_are_told_apart():
    found = statuses({"agent": "su", "episodes": 10}, {"agent": "su", "episodes": 20})
    labelled, texts = summary.distinguish(found)
    assert texts == ["budget = 10"] * 2 + ["budget = 20"] * 2
    points = {each.name: [(1.0, 0.5)] for each in found}
    curves = summary.grouped(labelled, points)
    assert {label: len(runs) for (label, _), runs in curves.items()} == {
        "su, budget = 10": 2, "su, budget = 20": 2,
    }  # fmt: skip
    other = [dataclasses.replace(each, label=each.name) for each in found]
    assert summary.distinguish(other)[0] == other


def test_interquartile_means_are_over_what_all_have_been_trained_on():
    found = {
        ("a", "one"): [curve(1), curve(3)],
        ("a", "two"): [curve(5)],
        ("b", "one"): [curve(2), curve(2)],
    }
    scores = summary.summarise(found)
    assert scores.common == ["one"]
    np.testing.assert_allclose(scores.normalised["a"], [[0, 1]])
    assert "Interquartile means over: one." in summary.lines(scores)[0]
    found["a", "one"] = [curve(1)]
    found["b", "two"] = [curve(7), curve(9)]
    assert summary.summarise(found).normalised["b"].shape == (2, 2)
    assert summary.summarise(found).normalised["a"].shape == (2, 1)
    apart = summary.summarise({("a", "one"): [curve(1)], ("b", "two"): [curve(2)]})
    assert apart.normalised == {}
    assert "no environment was used for all of them" in summary.lines(apart)[0]


def test_on_trees_and_chains_the_best_return_is_1():
    solved, other = [curve(1), curve(1)], [curve(0.25), curve(0.75)]
    scores = summary.summarise({("a", "Tree-5"): solved, ("a", "Chain-4"): other})
    np.testing.assert_allclose(scores.normalised["a"], [[1, 1], [0.25 / 0.99, 0.75 / 0.99]])
    equal = summary.summarise({("a", "one"): [curve(3)], ("b", "one"): [curve(3)]})
    assert [float(equal.normalised[label][0, 0]) for label in "ab"] == [1, 1]
    assert "1.00 |" in summary.lines(equal)[-1]  # and no interval, of one seed


def test_a_curve_goes_as_far_as_its_longest_run_that_has_ended():
    early = Curve(np.array([10.0, 20.0]), np.array([1.0, 1.0]), 100)
    late = Curve(np.arange(10.0, 101.0, 10.0), np.linspace(0, 1, 10), 100)
    begun = Curve(np.array([10.0]), np.array([7.0]), 100, ended=False)
    times, values = pictures.common([early, begun, late], points=10)
    assert values.shape == (2, 10)
    assert times[-1] == 100
    np.testing.assert_allclose(values[:, -1], [1.0, late.returns[-2:].mean()])
    times, values = pictures.common([begun])
    assert times[-1] == 10
    np.testing.assert_allclose(values, 7)


def test_pictures_of_many_labels_show_the_best(tmp_path):
    names = [f"su, learning_rate {k} and so on" for k in range(27)]
    found = {(name, "one"): [curve(k), curve(k + 0.5)] for k, name in enumerate(names)}
    scores = summary.summarise(found)
    shown = summary.best(scores, pictures.SHOWN)
    assert shown == names[-9:]
    from matplotlib.image import imread

    for picture in (
        pictures.curves(found, shown, tmp_path / "curves.png"),
        pictures.profiles(scores, shown, tmp_path / "profiles.png"),
    ):
        assert picture is not None
        height, width = imread(picture).shape[:2]
        assert 0.2 < height / width < 2


def test_an_unsolved_run_is_later_than_any_other_in_a_median():
    assert statistics.median_solved([30, None, 10]) == 30.0
    assert statistics.median_solved([10, 20]) == 15.0
    assert statistics.median_solved([10, None]) is None
    assert statistics.median_solved([]) is None
