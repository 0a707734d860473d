"""Environments of other people's making, odd ones among them."""

import json
import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv

import surveyor as sv
from surveyor.errors import SurveyorError
from tests.training.scripted import QUICK, Scripted


class Odd(Scripted):
    """Gives what is asked for."""

    def __init__(self, after=None, sees=None):
        super().__init__()
        self.after, self.shown = after, sees

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        obs = obs if self.shown is None else self.shown
        return self.after or (obs, reward, terminated, truncated, info)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Odd((np.zeros(2), 1.0, False, {})), "A step of Odd does not return"),
        (lambda: Odd((np.zeros(2), np.ones(2), False, False, {})), "A step of Odd does not return"),
        (lambda: Odd((np.zeros(2), "one", False, False, {})), "A step of Odd does not return"),
        (lambda: Odd(sees=np.zeros((2, 2))), r"observation of shape \(2, 2\) where"),
        (lambda: Odd(sees=np.zeros((1, 2))), r"observation of shape \(1, 2\) where"),
    ],
)
def test_a_step_that_is_none_is_said_so_and_noted(tmp_path, make, sentence):
    with pytest.raises(SurveyorError, match=sentence):
        sv.train(QUICK, make, steps=40, out=tmp_path)
    (failure,) = tmp_path.glob("*/failure.json")
    assert re.search(sentence, json.loads(failure.read_text())["reason"])


def test_one_environment_is_not_played_as_several():
    env = Scripted()
    with pytest.raises(SurveyorError, match="returns the same environment every time, and 2"):
        sv.train(QUICK, lambda: env, steps=40)


class Negated(gymnasium.RewardWrapper):
    def reward(self, reward):
        return -reward


def test_a_wrapped_object_is_trained_by_name_and_is_another_environment(tmp_path):
    plain, negated = gymnasium.make("CartPole-v1"), Negated(gymnasium.make("CartPole-v1"))
    runs = [sv.train("uniform", env, steps=60, out=tmp_path) for env in (plain, negated)]
    assert [run.config.env for run in runs] == ["CartPole-v1", "CartPole-v1 Negated"]
    assert runs[0].result["return"] == -runs[1].result["return"] > 0
    with pytest.raises(SurveyorError, match="no environment 'CartPole-v1 Negated'"):
        sv.load(runs[1].folder.path)
    long = gymnasium.make("FrozenLake-v1", desc=["SFFF" * 10] * 39 + ["FFFG" * 10])
    assert len(sv.train("uniform", long, steps=8, out=tmp_path).folder.path.name) < 120


class Shifted(Scripted):
    action_space = spaces.Discrete(2, start=5)


def test_actions_are_called_what_the_environment_calls_them():
    run = sv.train(QUICK, Shifted, steps=60)
    assert run.predict(np.zeros(2, np.float32))[0] in (5, 6)
    assert set(run.predict(np.zeros((40, 2), np.float32))[0]) <= {5, 6}


def test_an_asynchronous_vector_environment_survives_its_test():
    env = AsyncVectorEnv([Scripted] * 2, context="spawn")
    try:
        run = sv.train(QUICK, env, steps=60)
        assert len(sv.evaluate(run, 2).returns) == 2
        env.reset(seed=0)
    finally:
        env.close()
