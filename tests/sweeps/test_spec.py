"""Specifications: what they ask for, and what is wrong with them."""

from pathlib import Path

import pytest

import surveyor as sv
from surveyor.sweeps import spec

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def planned(**content):
    return spec.plan(content, "it")


def test_every_combination_of_agents_grids_environments_and_seeds():
    runs = planned(
        envs=["Tree-4", "MinAtar/Breakout"],
        seeds=2,
        episodes=50,
        steps=1000,
        agents=[
            {
                "agent": "su",
                "set": {"theta": 2},
                "grid": {"beta": [0.1, 1.0], "features": [30, 40]},
            },
            {"agent": "dqn", "envs": ["ALE/Pong"], "frames": 4000, "seeds": [5], "label": "DQN"},
        ],
    )
    assert len(runs) == 4 * 2 * 2 + 1
    first = runs[0].config
    assert (first.env, first.seed, first.episodes, first.steps) == ("Tree-4", 0, 50, None)
    assert (first.agent.theta, first.agent.beta, first.agent.features) == (2.0, 0.1, 30)
    assert first.agent.gradient_steps == sv.SU.preset("tree").gradient_steps
    assert runs[0].label == "SU, theta 2, beta 0.1, features 30"
    deep = runs[2].config
    assert (deep.env, deep.episodes, deep.steps) == ("MinAtar/Breakout", None, 1000)
    assert deep.agent.hidden == sv.SU.preset("minatar").hidden
    last = runs[-1]
    assert (last.label, last.config.seed, last.config.steps) == ("DQN", 5, 1000)
    assert len({run.config.name for run in runs}) == len(runs)


SU = {"agent": "su"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"agents": []}, "names no agents"),
        ({"agents": [{"preset": "x"}]}, "needs an agent"),
        ({"agents": [SU]}, "names no environments for su"),
        ({"agents": [SU], "envs": ["Tree-4"], "sedes": 3}, "no key 'sedes'; did you mean 'seeds'"),
        ({"agents": [{**SU, "gird": {}}], "envs": ["Tree-4"]}, "did you mean 'grid'"),
        ({"agents": [{**SU, "grid": {"theta": []}}], "envs": ["Tree-4"]}, "grid of theta is empty"),
        ({"agents": [{**SU, "set": {"thet": 1}}], "envs": ["Tree-4"]}, "did you mean 'theta'"),
        ({"agents": [{**SU, "set": {"theta": "a"}}], "envs": ["Tree-4"]}, "theta takes float"),
        ({"agents": [{**SU, "set": {"features": 2.5}}], "envs": ["Tree-4"]}, "features takes int"),
        ({"agents": [{**SU, "set": {"theta": -1.0}}], "envs": ["Tree-4"]}, "theta must be"),
        ({"agents": [{"agent": "sue"}], "envs": ["Tree-4"]}, "did you mean 'su'"),
        ({"agents": [SU], "envs": ["Tre-4"]}, "Tre"),
        ({"agents": [SU, SU], "envs": ["Tree-4"]}, "twice"),
        ({"agents": [SU], "envs": ["Tree-4"], "seeds": 0}, "seeds takes"),
        ({"agents": [SU], "envs": ["Tree-4"], "seeds": True}, "seeds takes"),
        ({"agents": [SU], "envs": "Tree-4"}, "envs takes a list"),
        ({"agents": SU, "envs": ["Tree-4"]}, "in double brackets"),
        ({"agents": [{"agent": 5}], "envs": ["Tree-4"]}, "agent takes a text"),
        ({"agents": [{**SU, "preset": 5}], "envs": ["Tree-4"]}, "preset takes a text"),
        ({"agents": [{**SU, "grid": {"theta": 1.0}}], "envs": ["Tree-4"]}, "takes a list"),
        (
            {
                "agents": [{**SU, "set": {"theta": 1.0}, "grid": {"theta": [1.0]}}],
                "envs": ["Tree-4"],
            },
            "theta is both in set and in grid",
        ),
        ({"agents": [SU], "envs": ["Tree-4"], "episodes": "100"}, "episodes takes a whole number"),
        ({"agents": [SU], "envs": ["Tree-4"], "episodes": 1.5}, "episodes takes a whole number"),
        ({"agents": [SU], "envs": ["Tree-4"], "keep_going": "no"}, "keep_going takes"),
        (
            {"agents": [SU], "envs": ["Tree-4"], "steps": 100},
            "no environment is learnt by",
        ),
        ({"agents": [SU], "envs": ["ALE/Pong"], "frames": -5}, "frames must be at least 1"),
        ({"agents": [SU], "envs": ["ALE/Pong"], "frames": 8, "steps": 2}, "both steps and frames"),
        (
            {"agents": [SU], "envs": ["ALE/Pong"], "protocol": "bogus"},
            "no protocol 'bogus'",
        ),
        ({"agents": [SU], "envs": ["ALE/Pong"], "protocol": ["machado"]}, "protocol takes a text"),
        ({"agents": [{**SU, "set": {"theta": 10**400}}], "envs": ["Tree-4"]}, "theta is too large"),
        ({"agents": [{**SU, "label": " "}], "envs": ["Tree-4"]}, "label takes a text"),
        ({"agents": [SU], "envs": ["Tree-4"], "seeds": [-1]}, "^it: seed must be"),
        ({"agents": [SU], "envs": ["Tree-4", "Tree-04"]}, "twice"),
        (
            {"agents": [SU], "envs": ["CartPole-v1"], "frames": 8},
            "no environment is counted in",
        ),
        (
            {"agents": [SU], "envs": ["Tree-4"], "protocol": "paper"},
            "no environment has protocols",
        ),
        (
            {"agents": [SU], "envs": ["MinAtar/Breakout"], "keep_going": False},
            "keep_going is given, but no environment is learnt by episodes",
        ),
        (
            {"agents": [{**SU, "set": {"hidden": sv.SU().hidden}}], "envs": ["Tree-4"]},
            "hidden has no effect on Tree-4",
        ),
        (
            {"agents": [{**SU, "grid": {"hidden": [sv.SU().hidden]}}], "envs": ["Tree-4"]},
            "hidden has no effect on Tree-4",
        ),
        ({"agents": [SU], "envs": ["Tree-4"], "episodes": float("inf")}, "takes a whole number"),
        ({"agents": [{**SU, "grid": {}}], "envs": ["Tree-4"]}, "the grid of su is empty"),
        ({"agents": [SU], "envs": ["ALE/Pong", "ALE/pong-v5"]}, "ALE-Pong-su-s0-.* twice"),
        (
            {"agents": [{**SU, "episodes": 10}, {**SU, "episodes": 20}], "envs": ["Tree-4"]},
            "two agents on Tree-4 are called 'SU' and differ",
        ),
        ({"agents": [SU], "envs": [".x:Foo-v0"]}, "names no package"),
        ({"agents": [SU], "envs": ["Tree-4"], "episodes": 0}, "episodes must be at least 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(content, sentence):
    with pytest.raises(sv.SurveyorError, match=sentence) as error:
        spec.plan(content, "it")
    assert "\n" not in str(error.value)


def test_presets_are_told_apart_by_their_names():
    entries = [{"agent": "bootdqn", "preset": name} for name in ("paper_1x", "tree_25x")]
    found = spec.plan({"agents": entries, "envs": ["Tree-4"]}, "it")
    assert [run.label for run in found] == [
        "Bootstrapped DQN, preset paper_1x",
        "Bootstrapped DQN, preset tree_25x",
    ]


def test_a_file_that_is_none_is_said_so(tmp_path):
    with pytest.raises(sv.SurveyorError, match="cannot be read"):
        spec.read(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("seeds = = 3")
    with pytest.raises(sv.SurveyorError, match="is not TOML"):
        spec.read(tmp_path / "bad.toml")


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_paper_s_own_specifications_can_be_read(path):
    assert len(spec.read(path)) > 1
