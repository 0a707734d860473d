"""Atari through ale-py: the two protocols, resuming, testing."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import surveyor as sv
from surveyor.cli import main
from surveyor.envs.ale import AtariEnvs
from surveyor.envs.atari import human_normalised, rom, scores
from surveyor.errors import SurveyorError
from surveyor.runs import api
from surveyor.runs.run import Run

QUICK = dataclasses.replace(
    sv.SUPlus.preset("atari"),
    torso="mlp",
    hidden=8,
    ensemble=4,
    warmup=40,
    replay_capacity=500,
    batch_size=4,
)


def test_all_49_games_are_there_by_any_spelling():
    assert len(scores()) == 49
    for game in scores():
        assert rom(game) == rom(game.title().replace("_", ""))
    assert human_normalised("Pong", 9.3) == pytest.approx(1.0)
    assert human_normalised("up_n_down", scores()["up_n_down"]["random"]) == 0.0
    with pytest.raises(SurveyorError, match="no protocol 'papr'; did you mean 'paper'"):
        sv.train("uniform", "ALE/Pong", protocol="papr")
    with pytest.raises(SurveyorError, match="actions 0 to 5 only"):
        AtariEnvs("Pong", 1)._step(np.array([6]))


def test_a_life_lost_ends_an_episode_for_learning_only_and_rewards_are_clipped():
    envs, rng = AtariEnvs("Breakout", 2), np.random.default_rng(0)
    envs.begin(0)
    steps = [envs.step(rng.integers(0, 4, 2)) for _ in range(400)]
    terminated = np.sum([step.terminated for step in steps], axis=0)
    ended = np.sum([step.ended for step in steps], axis=0)
    assert np.all(ended > 0)
    assert np.all(terminated >= 4 * ended)  # five lives
    machado = AtariEnvs("Breakout", 1, "machado")
    assert machado.spec.num_actions == 18
    machado.begin(0)
    steps = [machado.step(rng.integers(0, 18, 1)) for _ in range(300)]
    assert [bool(s.terminated[0]) for s in steps] == [bool(s.ended[0]) for s in steps]
    invaders = AtariEnvs("SpaceInvaders", 1)
    invaders.begin(0)
    steps = [invaders.step(rng.integers(0, 6, 1)) for _ in range(300)]
    assert max(s.score[0] for s in steps) >= 5
    assert max(s.reward[0] for s in steps) == 1.0


def test_the_environment_comes_back_to_the_moment_of_its_snapshot():
    envs, rng = AtariEnvs("Breakout", 2), np.random.default_rng(1)
    envs.reseed_after = 150  # so that both kinds of beginnings occur
    envs.begin(5)
    for _ in range(400):
        step = envs.step(rng.integers(0, 4, 2))
    snapshot = json.loads(json.dumps(envs.snapshot()))
    again = AtariEnvs("Breakout", 2)
    again.reseed_after = 150
    np.testing.assert_array_equal(again.restore(5, snapshot), step.obs)
    for _ in range(150):
        action = rng.integers(0, 4, 2)
        for a, b in zip(envs.step(action), again.step(action), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("optimised")
def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path, capsys):
    whole = sv.train(QUICK, "ALE/Pong", steps=240, out=tmp_path / "whole")
    stopped = api.begin(whole.config, tmp_path / "stopped")
    for _ in stopped.advance():
        if stopped.result["steps"] >= 100:
            break
    stopped.checkpoint()
    path = stopped.folder.path
    assert whole.result["frames"] == 4 * whole.result["steps"]
    # Only the part of the replay that is filled is written, beside the state.
    rows = sum(file.stat().st_size for file in (path / "checkpoint" / "replay").iterdir())
    assert rows == stopped.result["steps"] * (7056 + 4 + 4)
    assert (path / "checkpoint" / "state.npz").stat().st_size < 12_300_000
    resumed = sv.resume(path)
    leaves = [jax.tree.leaves((run.loop.learning, run.loop.replay)) for run in (whole, resumed)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))
    assert Run.open(path).config.protocol is None
    assert resumed.agent == QUICK
    # The test protocol, from the command line.
    film = tmp_path / "pong.gif"
    assert main(["evaluate", str(path), "--episodes", "1", "--json", "--video", str(film)]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert -21 <= outcome["mean_return"] <= 21
    assert outcome["normalised"] == pytest.approx((outcome["mean_return"] + 20.7) / 30)
    assert film.stat().st_size > 10_000
