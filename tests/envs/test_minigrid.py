"""MiniGrid by name: its views, and the option of the command line."""

import gymnasium
import numpy as np
import pytest
from minigrid.wrappers import FullyObsWrapper

from surveyor.cli import main
from surveyor.envs import families, minigrid_ids
from surveyor.errors import SurveyorError
from surveyor.runs import api

NAME = "MiniGrid-DoorKey-5x5-v0"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", [NAME, "BabyAI-GoToRedBall-v0"])
def test_step_by_step_the_same_as_minigrid(name, full):
    env, oracle = minigrid_ids._made(name, full), gymnasium.make(name)
    oracle = FullyObsWrapper(oracle) if full else oracle
    side = oracle.unwrapped.width if full else 7
    assert env.observation_space["image"].shape == (side, side, 3)
    obs, _ = env.reset(seed=5)
    expected, _ = oracle.reset(seed=5)
    for action in np.random.default_rng(0).integers(0, 7, 60):
        np.testing.assert_array_equal(obs["image"], expected["image"])
        assert (obs["direction"], obs["mission"]) == (expected["direction"], expected["mission"])
        assert env.observation_space["image"].contains(obs["image"])
        obs, *rest, _ = env.step(int(action))
        expected, *other, _ = oracle.step(int(action))
        assert rest == other
        if any(rest[1:]):
            break


def test_an_episode_that_runs_out_of_time_is_truncated():
    env = minigrid_ids._made("MiniGrid-Empty-5x5-v0", False)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(env.unwrapped.max_steps)]
    assert ends[-2:] == [(False, False), (False, True)]


@pytest.mark.parametrize("protocol", ["partial-view", "full-view"])
def test_images_are_of_names(protocol):
    family = families.find(NAME)
    assert family.preset(NAME) == "grid"
    spec = family.make(NAME, protocol).make(1).spec
    assert spec.picture == ((7, 7, 3) if protocol == "partial-view" else (5, 5, 3))
    assert spec.bounds[:3] == ((0, 10), (0, 5), (0, 3))
    assert spec.codes == (11, 6, 4)


def test_names_and_protocols():
    family = families.find(NAME)
    assert (family.name, tuple(family.protocols)) == (
        "MiniGrid",
        ("partial-view", "full-view", "compiled"),
    )
    assert families.find("BabyAI-GoToRedBall-v0") is family
    assert family.canonical(NAME) == NAME
    with pytest.raises(SurveyorError, match="did you mean 'MiniGrid-DoorKey-5x5-v0'"):
        family.canonical("MiniGrid-DorKey-5x5-v0")
    with pytest.raises(SurveyorError, match="did you mean 'MiniGrid-DoorKey-5x5-v0'"):
        families.find("minigrid-doorkey-5x5-v0").canonical("minigrid-doorkey-5x5-v0")
    assert minigrid_ids._candidates("CartPole-v1") == []


def test_the_name_of_a_protocol_is_an_option(monkeypatch, capsys):
    class StopError(Exception):
        pass

    found = []

    def configure(agent, env, **options):
        found.append((env, options["protocol"]))
        raise StopError

    monkeypatch.setattr(api, "configure", configure)
    for words in (["--full-view", NAME], [NAME, "--protocol", "full-view"], [NAME]):
        with pytest.raises(StopError):
            main(["train", *words])
    assert found == [(NAME, "full-view"), (NAME, "full-view"), (NAME, None)]
    assert main(["train", "Tree-4", "--full-view"]) == 2
    assert "--protocol has no effect on Tree-4" in capsys.readouterr().err
