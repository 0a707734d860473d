"""Scores of one's own Atari runs, in table 1 and figure 4."""

import dataclasses
import json

import pytest

from surveyor import SU, SUPlus
from surveyor.cli import main
from surveyor.paper import atari_scores
from surveyor.runs import api
from surveyor.runs.folder import RunFolder
from tests.paper.common import evaluated

pytest.importorskip("ale_py")


def test_agents_are_named_with_their_preset_and_what_differs_from_it():
    released, text = SU.preset("atari", "released"), SU.preset("atari", "text")
    assert atari_scores.describe(released) == "SU (released)"
    assert atari_scores.describe(text) == "SU (text)"
    assert atari_scores.describe(SUPlus.preset("atari")) == "SU+"
    changed = dataclasses.replace(text, warmup=10)
    assert atari_scores.describe(changed) == "SU (text, warmup 10)"


def boxing(path):
    """Write two runs of SU on one game."""
    evaluated(path, "ALE/Boxing", 0, (1.0, 9.0, 5.0))
    evaluated(path, "ALE/Boxing", 1, (2.0, 4.0, 6.0))


def test_a_run_s_score_is_its_best_its_last_or_its_mean_evaluation(tmp_path):
    boxing(tmp_path)
    expected = {"best": [9.0, 6.0], "last": [5.0, 6.0], "mean": [5.0, 4.0]}
    for score, values in expected.items():
        found, kind = atari_scores.collect(str(tmp_path), score)
        assert (found["su"].scores, kind) == ({"boxing": values}, score)


def test_a_smaller_experiment_is_no_seed_of_a_larger_one(tmp_path):
    boxing(tmp_path)
    evaluated(tmp_path, "ALE/Boxing", 2, (99.0,), steps=50)
    found, _ = atari_scores.collect(str(tmp_path), "best")
    assert found["su"].scores == {"boxing": [9.0, 6.0]}
    labels = [column.label for column in found.values()]
    assert labels[0] == "SU (released)"
    assert labels[1].startswith("SU (released), 200 frames (")


def test_table_1_and_figure_4_show_own_runs_above_published_scores(tmp_path, capsys):
    boxing(tmp_path)
    evaluated(tmp_path, "ALE/Pong", 0, (3.0,))  # a game of which fewer seeds are done
    evaluated(tmp_path, "ALE/Boxing", 0, (50.0,), agent="su-plus")
    words = ["--runs", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["paper", "table1", *words]) == 0
    text = capsys.readouterr().out
    assert "| SU (released) | 2 | 1 to 2 |" in text
    assert "| SU+ | 1 | 1 |" in text
    assert "Successor Uncertainties, published" in text
    assert "its best evaluation" in text
    data = json.loads((tmp_path / "out" / "table1.json").read_text())
    assert (data["score"], data["human"]) == ("best", "paper")
    assert data["columns"]["su"]["low"][1] < data["columns"]["su"]["high"][1]
    assert main(["paper", "fig4", *words]) == 0
    text = capsys.readouterr().out
    assert "| SU+ | 0 | 0 | 1 |" in text
    assert "DQN + ε-greedy, published" in text


def test_damaged_and_missing_runs_are_said_to_be(tmp_path, capsys):
    boxing(tmp_path)
    config = evaluated(tmp_path, "ALE/Pong", 0, (3.0,))
    (tmp_path / config.name / "config.json").write_text("{")
    out = str(tmp_path / "out")
    assert main(["paper", "table1", "--runs", str(tmp_path), "--out", out]) == 0
    said = capsys.readouterr()
    assert f"{config.name} is left out" in said.err
    assert "| SU (released) | 1 | 2 |" in said.out
    assert main(["paper", "table1", "--runs", out, "--out", out]) == 2
    assert "no Atari runs with a score" in capsys.readouterr().err


def test_figure_4_needs_a_run_of_the_paper_s_agent(tmp_path, capsys):
    evaluated(tmp_path, "ALE/Boxing", 0, (50.0,), agent="su-plus")
    assert main(["paper", "fig4", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "there is no run of agent su" in capsys.readouterr().err


def test_runs_of_a_sweep_count_by_their_returns_in_training(tmp_path, capsys):
    for seed, late in ((0, 12.0), (1, 14.0)):
        config = api.configure("su", "ALE/Boxing", seed=seed, steps=100)
        folder = RunFolder.create(tmp_path / config.name, config)
        folder.append([{"step": 50, "return": 1.0}, {"step": 100, "return": late}])
        folder.finish({"steps": 100})
    columns, which = atari_scores.collect(str(tmp_path), "best")
    assert (columns["su"].scores, which) == ({"boxing": [12.0, 14.0]}, "training")
    assert main(["paper", "table1", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "mean return in the last tenth of training" in capsys.readouterr().out
