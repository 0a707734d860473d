"""Table 1 and figure 4, from the paper's scores and from one's own runs."""

import json

import numpy as np
import pytest

import surveyor as sv
from surveyor.cli import main
from surveyor.launch import work
from surveyor.paper import atari, atari_table
from surveyor.paper.atari_table import Column
from surveyor.runs import api, storage
from surveyor.runs.folder import RunFolder
from surveyor.runs.periodic_evaluation import EvaluationPlan


def test_the_published_scores_give_the_paper_s_table(tmp_path, capsys):
    for name, column in atari_table.published().items():
        assert len(column.scores) == 49
        found = atari_table.percentiles(column.normalised(list(column.scores), "paper"))
        printed = atari_table.PRINTED[name]
        tolerance = 0.1 if name == "dqn" else 0.02  # of DQN the paper seems to have left one out
        np.testing.assert_allclose(found[:3], printed[:3], atol=tolerance)
        assert found[3] == pytest.approx(printed[3], abs=0.01)
    su = atari_table.published()["su"]
    other = atari_table.percentiles(su.normalised(list(su.scores), "30min"))
    np.testing.assert_allclose(other, (0.971, 1.806, 6.912, 73.47), atol=0.005)
    assert main(["paper", "table1", "--human", "30min", "--out", str(tmp_path)]) == 0
    assert "1.806" in capsys.readouterr().out


def test_wins_are_those_of_figure_4(tmp_path, capsys):
    columns = atari_table.published()
    found = {name: atari_table.wins(columns["su"], columns[name]) for name in ("bootdqn", "ube")}
    assert found == {"bootdqn": (36, 0, 13), "ube": (43, 0, 6)}
    assert atari_table.wins(columns["su"], columns["dqn"]) == (41, 1, 7)
    assert main(["paper", "fig4", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "fig4.png").stat().st_size > 10_000
    data = json.loads((tmp_path / "fig4.json").read_text())
    gap = atari_table.differences(columns["su"], columns["dqn"], "paper")
    assert data["dqn"] == gap
    assert sum(value > 0 for value in gap.values()) == 41


def test_several_seeds_have_intervals():
    rng = np.random.default_rng(0)
    scores = {game: list(1000 + 100 * rng.random(3)) for game in ("pong", "alien", "boxing")}
    (row,) = atari_table.table1({"su": Column("mine", scores)}, "paper")[2:]
    assert row.startswith("| mine | 3 | ")
    assert row.count(" to ") == 4


def test_tests_during_training_are_the_same_after_a_stop(tmp_path):
    config = api.configure("uniform", "CartPole-v1", steps=400)
    options = work.RunOptions(evaluation=EvaluationPlan(4, 5))
    found = {}
    for name in ("whole", "stopped"):
        where = storage.at(tmp_path / name)
        where.prepare()
        if name == "stopped":
            seen = []

            def stop(seen=seen):
                seen.append(1)
                return len(seen) > 150

            half = work.train_run(config, where, lambda record, now: None, stop, options)
            assert 100 < half["steps"] < 400
        assert work.train_run(config, where, lambda record, now: None, None, options)["finished"]
        found[name] = RunFolder(tmp_path / name / config.name).evaluations()
    assert len(found["whole"]) == 4
    assert found["whole"][-1]["at"] == 400
    assert len(found["whole"][0]["returns"]) == 5
    assert found["stopped"] == found["whole"]
    numbers = [test["number"] for test in found["whole"]]
    assert numbers == [1, 2, 3, 4]


def test_the_table_is_filled_from_one_s_own_runs(tmp_path, capsys):
    for seed, tests in ((0, (1.0, 9.0, 5.0)), (1, (2.0, 4.0, 6.0))):
        config = api.configure("su", "ALE/Boxing", seed=seed, steps=100)
        folder = RunFolder.create(tmp_path / config.name, config)
        folder.write_evaluations(
            [
                {"number": i + 1, "of": 3, "at": i, "mean_return": t, "returns": [t]}
                for i, t in enumerate(tests)
            ]
        )
    expected = {"best": [9.0, 6.0], "last": [5.0, 6.0], "mean": [5.0, 4.0]}
    for score, values in expected.items():
        assert atari.collect(str(tmp_path), score)[0]["su"].scores == {"boxing": values}
    out = tmp_path / "out"
    assert main(["paper", "table1", "--runs", str(tmp_path), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "| Successor Uncertainties | 1 | 2 |" in text
    assert "its best test" in text
    data = json.loads((out / "table1.json").read_text())
    assert (data["score"], data["human"]) == ("best", "paper")
    assert data["columns"]["su"]["low"][1] < data["columns"]["su"]["high"][1]
    assert "Successor Uncertainties, published" in text
    # A smaller experiment in the same folder is no seed of the larger one.
    config = api.configure("su", "ALE/Boxing", seed=2, steps=50)
    folder = RunFolder.create(tmp_path / config.name, config)
    folder.write_evaluations(
        [{"number": 1, "of": 1, "at": 50, "mean_return": 99.0, "returns": [99.0]}]
    )
    found, _ = atari.collect(str(tmp_path), "best")
    assert found["su"].scores == {"boxing": [9.0, 6.0]}
    assert len(found) == 2
    # A game of which fewer seeds are done.
    config = api.configure("su", "ALE/Pong", seed=0, steps=100)
    folder = RunFolder.create(tmp_path / config.name, config)
    folder.write_evaluations(
        [{"number": 1, "of": 1, "at": 99, "mean_return": 3.0, "returns": [3.0]}]
    )
    assert main(["paper", "table1", "--runs", str(tmp_path), "--out", str(out)]) == 0
    assert main(["paper", "fig4", "--runs", str(tmp_path), "--out", str(out)]) == 0
    assert "DQN + ε-greedy, published" in capsys.readouterr().out
    assert main(["paper", "table1", "--runs", str(out), "--out", str(out)]) == 2
    assert "no Atari runs with a score" in capsys.readouterr().err
    # A run that cannot be read does not hide the others.
    (tmp_path / config.name / "config.json").write_text("{")
    assert main(["paper", "table1", "--runs", str(tmp_path), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert f"{config.name} is left out" in said.err
    assert "| Successor Uncertainties | 1 | 2 |" in said.out


def test_runs_of_a_sweep_count_by_their_returns_in_training(tmp_path, capsys):
    for seed, late in ((0, 12.0), (1, 14.0)):
        config = api.configure("su", "ALE/Boxing", seed=seed, steps=100)
        folder = RunFolder.create(tmp_path / config.name, config)
        folder.append([{"step": 50, "return": 1.0}, {"step": 100, "return": late}])
        folder.finish({"steps": 100})
    columns, which = atari.collect(str(tmp_path), "best")
    assert (columns["su"].scores, which) == ({"boxing": [12.0, 14.0]}, "training")
    assert main(["paper", "table1", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "mean return in the last tenth of training" in capsys.readouterr().out


def test_a_game_that_the_paper_does_not_have_is_refused():
    experiment = atari.Experiment(["tetris"], ["su"], 1, 1000, EvaluationPlan(1, 1))
    with pytest.raises(sv.SurveyorError, match="no game of the paper 'tetris'"):
        experiment.planned()


def test_quick_leaves_alone_what_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(atari, "run", lambda experiment, *_: asked.append(experiment))
    assert main(["paper", "atari", "--quick", "--games", "breakout", "--seeds", "1"]) == 0
    assert (asked[0].games, asked[0].seeds) == (["breakout"], 1)
    assert asked[0].frames == atari.QUICK["frames"]
    assert main(["paper", "atari", "--games", "pong", "--frames", "8"]) == 0
    assert (asked[1].seeds, asked[1].frames, asked[1].settings) == (3, 8, {})
