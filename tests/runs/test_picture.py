"""The picture of how a run learnt."""

import re

import pytest

import surveyor as sv
from surveyor.runs import picture

pytest.importorskip("matplotlib")


def texts(run, path):
    """Return the texts in a picture of the run."""
    return re.findall("<text .*?>(.*?)</text>", picture.learning(run, path).read_text("utf-8"))


def test_runs_by_episodes_show_depth_evaluations_and_success(tmp_path):
    run = sv.train("psrl", "Tree-4", episodes=200)
    drawn = texts(run, tmp_path / "run.svg")
    assert "Tree-4, PSRL, seed 0" in drawn
    assert "steps in the episode" in drawn
    assert f"first success: {run.first_success}" in drawn
    assert f"optimal from here on: {run.solved_at}" in drawn


def test_episodes_of_one_length_show_returns(tmp_path):
    run = sv.train("uniform", "Chain-4", episodes=20)
    assert "return of the episode" in texts(run, tmp_path / "run.svg")


def test_runs_by_steps_show_returns(tmp_path):
    run = sv.train("uniform", "CartPole-v1", steps=400)
    drawn = texts(run, tmp_path / "run.svg")
    assert "return of training episodes" in drawn
    assert "episode length" in drawn


def test_a_format_that_does_not_exist_is_refused(tmp_path):
    run = sv.train("uniform", "Tree-2", episodes=10)
    with pytest.raises(sv.SurveyorError, match="cannot be written"):
        picture.learning(run, tmp_path / "run.xyz")
