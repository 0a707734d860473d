"""Environment families: one description each, found by name or object, and a user's own."""

import dataclasses
import subprocess
import sys

import gymnasium
import jax.numpy as jnp
import pytest
from gymnasium.vector import SyncVectorEnv

import surveyor as sv
from surveyor.cli import main
from surveyor.envs import Family, families, objects
from surveyor.errors import SurveyorError
from surveyor.runs import api
from tests.training.scripted import Scripted


@pytest.mark.parametrize(
    ("name", "family", "preset", "unit", "budget"),
    [
        ("Tree-10", "Tree", "tree", "episodes", 5000),
        ("TiedTree-10", "TiedTree", "tree", "episodes", 5000),
        ("Chain-40", "Chain", "chain", "episodes", 11354),
        ("MinAtar/Breakout", "MinAtar", "minatar", "steps", 1_000_000),
        ("ALE/Pong-v5", "ALE", "atari", "frames", 50_000_000),
        ("CartPole-v1", "Gymnasium", "classic", "steps", 200_000),
        ("FrozenLake-v1", "Gymnasium", "numbered", "steps", 200_000),
    ],
)
def test_a_name_has_one_family_with_a_preset_and_a_budget(name, family, preset, unit, budget):
    found = families.find(name)
    assert (found.name, found.preset(name), found.unit) == (family, preset, unit)
    assert found.default_budget(name) == budget


def test_reference_scores_and_sizes():
    assert families.find("Chain-5").reference("Chain-5") == (0.0, 0.99)
    assert families.find("ALE/Pong").reference("ALE/Pong") == (-20.7, 9.3)
    assert families.find("CartPole-v1").reference("CartPole-v1") is None
    assert families.find("Tree-12").size("Tree-12") == 12
    assert families.find("CartPole-v1").size("CartPole-v1") is None


def test_atari_games_have_one_spelling():
    names = ("ALE/Pong", "ALE/pong", "ALE/Pong-v5")
    assert {families.find(name).canonical(name) for name in names} == {"ALE/Pong"}
    name = "ALE/space_invaders"
    assert families.find(name).canonical(name) == "ALE/SpaceInvaders"


def test_a_registered_gymnasium_id_is_not_a_misspelt_tree():
    assert families.find("Tree-v0").name == "Tree"
    gymnasium.register("Tree-v0", Scripted)
    try:
        assert families.find("Tree-v0").name == "Gymnasium"
    finally:
        del gymnasium.registry["Tree-v0"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Trea-10", "did you mean 'Tree-10'?"),
        ("chain-7", "did you mean 'Chain-7'?"),
        ("minatar/breakout", "did you mean 'MinAtar/Breakout'?"),
        ("cartpole-v1", "did you mean 'CartPole-v1'?"),
        ("nothing at all", "`surveyor list envs` lists them."),
    ],
)
def test_an_unknown_name_gets_the_nearest_one_of_any_family(name, hint):
    with pytest.raises(SurveyorError) as error:
        families.find(name).canonical(name)
    assert str(error.value) == f"There is no environment '{name}'; {hint}"


def test_objects_have_families_too():
    tree = sv.envs.Tree(4)
    found = families.of(tree)
    assert (found.name, found.preset(tree.name), found.unit) == ("Tree", "tree", "episodes")
    assert found.make(tree.name, None) is tree
    for env in (Scripted(), Scripted, SyncVectorEnv([Scripted]), lambda: Scripted()):
        found = families.of(env)
        assert (found.unit, found.preset("x")) == ("steps", "classic")
    assert families.of(lambda: gymnasium.make("FrozenLake-v1")).preset("x") == "numbered"
    with pytest.raises(SurveyorError, match="int is not an environment: give a name"):
        families.of(5).make("5", None)


def test_an_episodic_environment_of_a_user_is_learnt_by_episodes():
    class Maze(sv.envs.Tree):
        @property
        def name(self):
            return f"Maze-{self.size}"

        @property
        def default_episodes(self):
            return 30

    config = api.configure("uniform", Maze(3))
    assert (config.env, config.episodes, config.unit) == ("Maze-3", 30, "episodes")
    assert objects.name_of(Maze(3)) == "Maze-3"


GRID = Family(
    name="Grid",
    usage="Grid-<n>",
    summary="Trees under another name.",
    matches=lambda name: name.startswith("Grid-"),
    make=lambda name, protocol: sv.envs.Tree(int(name.removeprefix("Grid-"))),
    unit="episodes",
    default_budget=lambda name: 40,
    preset=lambda name: "tree",
    numbered=lambda name: True,
)


@pytest.fixture
def grid():
    sv.envs.register(GRID)
    yield GRID
    families.FAMILIES.remove(GRID)


def test_a_user_s_family_is_found_trained_and_listed(grid, capsys):
    assert families.find("Grid-3") is grid
    assert families.find("Tree-3") is not grid
    run = sv.train("uniform", "Grid-3")
    assert (run.config.env, run.result["episodes"]) == ("Grid-3", 40)
    assert sv.envs.make("Grid-3")[0] == sv.envs.Tree(3)
    assert main(["list", "envs"]) == 0
    assert capsys.readouterr().out.startswith("Grid-<n>         Trees under another name.\n")


def test_a_later_family_wins_but_not_under_a_name_that_is_taken(grid):
    with pytest.raises(SurveyorError, match="already is an environment family 'Grid'"):
        sv.envs.register(grid)
    other = dataclasses.replace(GRID, name="Other")
    sv.envs.register(other)
    try:
        assert families.find("Grid-3") is other
    finally:
        families.FAMILIES.remove(other)


def test_lists_of_families_need_no_jax():
    code = """
import sys
import surveyor.envs.gymnasium
from surveyor.envs import FAMILIES, find
print(tuple(find("ALE/Pong").protocols), "jax" in sys.modules, len(FAMILIES) > 4)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip().startswith("('paper', 'machado') False True"), answer.stderr


class Space:
    def __init__(self, n):
        self.n = n


class Line:
    """A functional environment of six numbered places, of which the last pays."""

    default_params, name = None, "Line"

    def action_space(self, params):
        return Space(2)

    def observation_space(self, params):
        return Space(6)

    def reset(self, key, params):
        start = jnp.zeros((), jnp.int32)
        return start, start

    def step(self, key, state, action, params):
        last = jnp.clip(state + 2 * action - 1, 0, 5)
        over = last == 5
        new = jnp.where(over, 0, last)
        return new, new, over.astype(jnp.float32), over, over & False, {"final_observation": last}


def test_functional_environments_with_numbered_states_are_learnt_as_tables():
    for env in (Line(), (Line(), None)):
        assert families.of(env).setting("Line").tables
        assert families.of(env).preset("Line") == "numbered"
    agent = dataclasses.replace(sv.SUPlus.preset("numbered"), untried=0.5)
    assert api.configure(agent, Line(), steps=10).agent == agent
    with pytest.raises(SurveyorError, match="torso has no effect on Line: it is for networks"):
        api.configure(sv.DQN(torso="mlp", train_every=4), Line())
    run = sv.train("dqn", Line(), steps=400)
    assert run.predict(3)[0] in (0, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"unit": "steps"}, "Grid-4 is counted in steps by its family Grid, but"),
        ({"numbered": lambda name: False}, "Whether Grid-4 has numbered states is not what"),
    ],
)
def test_a_family_that_describes_its_environments_wrongly_is_told_so(change, sentence, monkeypatch):
    wrong = dataclasses.replace(GRID, **change)
    monkeypatch.setattr(families, "FAMILIES", [wrong, *families.FAMILIES])
    agent = dataclasses.replace(sv.DQN(), train_every=4) if "unit" in change else "dqn"
    with pytest.raises(SurveyorError, match=sentence):
        sv.train(agent, "Grid-4")


def test_the_command_line_reads_a_family_s_protocols_and_budget(monkeypatch, capsys):
    ways = {"gentle": "without wind", "rough": "with wind"}
    family = dataclasses.replace(GRID, protocols=ways, default_budget=lambda name: 1_234)
    monkeypatch.setattr(families, "FAMILIES", [family, *families.FAMILIES])
    with pytest.raises(SystemExit):
        main(["train", "Grid-4", "--help"])
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "gentle (without wind) or rough (with wind)" in said
    assert "Largest number of training episodes. By default 1,234." in said
    assert main(["train", "Tree-4", "--protocol", "gentle"]) == 2
    assert "--protocol has no effect on Tree-4" in capsys.readouterr().err
