"""The paper's Atari experiment."""

import json

import pytest

import surveyor as sv
from surveyor import SU, SUPlus
from surveyor.cli import main
from surveyor.launch import work
from surveyor.paper import atari
from surveyor.paper.options import AtariOptions
from surveyor.runs import api, storage
from surveyor.runs.evaluation import EvaluationPlan
from surveyor.runs.folder import RunFolder
from surveyor.sweeps import spec
from tests.paper.common import evaluated


def test_evaluations_during_training_are_the_same_after_a_stop(tmp_path):
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
        done = work.train_run(config, where, lambda record, now: None, options=options)
        assert done["finished"]
        found[name] = RunFolder(tmp_path / name / config.name).evaluations()
    assert len(found["whole"]) == 4
    assert found["whole"][-1]["at"] == 400
    assert len(found["whole"][0]["returns"]) == 5
    assert found["stopped"] == found["whole"]
    numbers = [test["number"] for test in found["whole"]]
    assert numbers == [1, 2, 3, 4]


def test_a_game_that_the_paper_does_not_have_is_refused():
    with pytest.raises(sv.SurveyorError, match="no game of the paper 'tetris'"):
        atari.experiment(AtariOptions(games=["tetris"]))


def test_quick_leaves_alone_what_is_asked_for():
    quick, _ = atari.experiment(AtariOptions(quick=True, games=["breakout"], seeds=1))
    assert (quick["envs"], quick["seeds"]) == (["ALE/breakout"], 1)
    assert quick["frames"] == atari.QUICK["frames"]
    full, evaluation = atari.experiment(AtariOptions(games=["pong"], frames=8))
    assert (full["seeds"], full["frames"]) == (3, 8)
    assert full["agents"] == [{"agent": "su", "set": {}}]
    assert evaluation == EvaluationPlan(50, 100)
    assert len(atari.experiment(AtariOptions())[0]["envs"]) == 49


def test_quick_trains_the_paper_s_agent_with_settings_that_it_has():
    pytest.importorskip("ale_py")
    options = AtariOptions(quick=True, games=["pong"], seeds=1, agents=["su", "su-plus"])
    content, _ = atari.experiment(options)
    su, plus = (run.config.agent for run in spec.plan(content, "it"))
    assert su == SU(**sv.agents.find("su").values("atari", "released") | atari.QUICK_AGENT)
    assert isinstance(plus, SUPlus)


def test_wrong_options_are_refused(capsys):
    for words in (["--seeds", "0"], ["--tests", "0"], ["--frames", "-4"]):
        assert main(["paper", "atari", *words]) == 2
        assert f"{words[0][2:]} must be at least 1, not {words[1]}." in capsys.readouterr().err


def test_tables_of_runs_name_both_agents(tmp_path, capsys):
    pytest.importorskip("ale_py")
    evaluated(tmp_path, "ALE/Boxing", 0, (1.0, 9.0, 5.0))
    evaluated(tmp_path, "ALE/Boxing", 0, (2.0, 3.0, 7.0), agent="su-plus")
    atari.show(str(tmp_path), tmp_path / "out", "paper")
    text = capsys.readouterr().out
    assert "| boxing | SU (released) | 1 | 9 " in text
    assert "| boxing | SU+ | 1 | 7 " in text
    assert json.loads((tmp_path / "out" / "atari.json").read_text())["mean"]["su-plus"] == {
        "boxing": [4.0]
    }
    assert "Figure 4: SU (released) beside each other algorithm" in text
