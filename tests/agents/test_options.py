"""Options: documented, within their limits, and refused where they have no effect."""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import pytest

import surveyor as sv
from surveyor import SU, HyperAgent, SUPlus, SurveyorError, agents
from surveyor.agents import options
from surveyor.agents.options import Setting, refuse_unread, unread
from surveyor.agents.presets import Preset
from surveyor.envs.tree import Tree
from surveyor.replay.steps import StepReplay
from surveyor.runs import api
from surveyor.training import episodes
from tests.common import VECTOR

TREE, LAKE, POLE = Setting(True, True), Setting(True, False), Setting(False, False)
BY_STEPS = "it is for environments that are learnt by steps"
NETWORKS = "it is for networks, and this environment has numbered states"
TABLES = "it is for environments with numbered states"


@pytest.mark.parametrize(
    ("kind", "values", "setting", "sentence"),
    [
        (SUPlus, {"n_step": 3}, TREE, f"n_step has no effect on X: {BY_STEPS}."),
        (SU, {"redraw_every": 9}, TREE, f"redraw_every has no effect on X: {BY_STEPS}."),
        (SUPlus, {"envs": 4}, TREE, f"envs has no effect on X: {BY_STEPS}."),
        (sv.DQN, {"train_every": 4}, TREE, f"train_every has no effect on X: {BY_STEPS}."),
        (SU, {"warmup": 9}, TREE, f"warmup has no effect on X: {BY_STEPS}."),
        (SUPlus, {"torso": "mlp"}, LAKE, f"torso has no effect on X: {NETWORKS}."),
        (SUPlus, {"hidden": 64}, LAKE, f"hidden has no effect on X: {NETWORKS}."),
        (SU, {"hidden": 64}, TREE, f"hidden has no effect on X: {NETWORKS}."),
        (SU, {"psi_relu": False}, TREE, f"psi_relu has no effect on X: {NETWORKS}."),
        (sv.BootDQN, {"target_every": 9}, LAKE, f"target_every has no effect on X: {NETWORKS}."),
        (SUPlus, {"bins": 9}, LAKE, f"bins has no effect on X: {NETWORKS}."),
        (sv.DQN, {"duelling": True}, LAKE, f"duelling has no effect on X: {NETWORKS}."),
        (SU, {"normalise": "together"}, LAKE,
         f"normalise = together has no effect on X: {NETWORKS}."),
        (SU, {"layers": "two"}, POLE, f"layers has no effect on X: {TABLES}."),
    ],
)  # fmt: skip
def test_an_option_without_effect_is_refused_in_one_sentence(kind, values, setting, sentence):
    with pytest.raises(SurveyorError) as error:
        refuse_unread(kind(**values), setting, "X")
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("kind", "values", "setting", "needed"),
    [
        (SU, {"policy": "per_example", "policy_samples": 9}, TREE, "policy = joint or marginal"),
        (HyperAgent, {"target_indices": 9}, LAKE, "target = optimistic"),
        (SUPlus, {"torso": eqx.nn.Identity(), "depth": 3}, POLE, "a torso by name"),
    ],
)
def test_an_option_that_needs_another_one_is_refused_without_it(kind, values, setting, needed):
    agent, name = kind(**values), list(values)[-1]
    sentence = f"{name} has no effect here: it needs {needed}."
    with pytest.raises(SurveyorError) as error:
        refuse_unread(agent, setting, "X")
    assert str(error.value) == sentence
    refuse_unread(agent, setting, "X", usual={name: values[name]})  # not the user's choice
    refuse_unread(kind(), setting, "X")
    with pytest.raises(SurveyorError, match="has no effect"):  # given, although it is the default
        refuse_unread(dataclasses.replace(agent, **{name: getattr(kind(), name)}), setting, "X",
                      given=[name])  # fmt: skip


def test_an_option_that_needs_another_one_is_accepted_with_it():
    refuse_unread(SU(policy="marginal", policy_samples=9), TREE, "X")
    refuse_unread(HyperAgent(target="optimistic", target_indices=9), LAKE, "X")
    refuse_unread(SUPlus(torso="mlp", depth=3), POLE, "X")


def test_a_preset_s_own_values_are_no_choice_of_the_user(monkeypatch):
    presets = {"default": Preset("a test", {"tree": {"policy_samples": 9}})}
    entry = dataclasses.replace(agents.find("su"), presets=presets)
    monkeypatch.setitem(agents.REGISTRY, "su", entry)
    agent = dataclasses.replace(SU.preset("tree"), policy="per_example")
    assert agent.policy_samples == 9
    api.configure(agent, "Tree-4")
    with pytest.raises(SurveyorError, match=r"policy_samples has no effect here"):
        api.configure(dataclasses.replace(agent, policy_samples=7), "Tree-4")


@pytest.mark.parametrize(
    ("agent", "env", "more", "sentence"),
    [
        (sv.DQN(replay="prioritised(1)"), "Tree-4", {}, r"prioritised\(1\) is for .* by steps"),
        (dataclasses.replace(SUPlus.preset("classic"), replay="recent-and-best(9, 9)"),
         "CartPole-v1", {}, r"recent-and-best\(9, 9\) is for .* by episodes"),
        ("dqn", "CartPole-v1", {"stop_when_solved": False}, "by steps: it is never solved"),
        ("dqn", "Tree-4", {"given": ["n_step"]}, "n_step has no effect on Tree-4"),
    ],
)  # fmt: skip
def test_configurations_with_something_that_has_no_effect_are_refused(agent, env, more, sentence):
    with pytest.raises(SurveyorError, match=sentence):
        api.configure(agent, env, **more)


def test_options_with_effect_and_defaults_are_accepted_everywhere():
    for setting in (TREE, LAKE, POLE):
        for entry in agents.REGISTRY.values():
            refuse_unread(entry.load()(), setting, "X")
    refuse_unread(SUPlus(bins=3, hidden=9, torso="mlp", n_step=3), POLE, "X")
    refuse_unread(SUPlus(untried=0.5, n_step=3, envs=2), LAKE, "X")
    refuse_unread(SU(layers="two"), LAKE, "X")
    refuse_unread(sv.BootDQN(hidden=9), TREE, "X")  # Q tables have a hidden layer


def test_the_unread_options_of_a_class_come_with_their_scope():
    silent = unread(SU, TREE)
    assert silent["hidden"] == "networks"
    assert silent["train_every"] == "steps"
    assert "layers" not in silent
    assert unread(SU, POLE) == {"layers": "tables"}


def test_replay_strategies_are_refused_in_runs_that_they_are_not_for():
    with pytest.raises(SurveyorError, match=r"prioritised\(0\.6\) is for .* learnt by steps\."):
        episodes.start(sv.DQN(replay="prioritised(0.6)"), Tree(3), jax.random.key(0))
    agent = dataclasses.replace(SUPlus.preset("classic"), replay="recent-and-best(10, 20)")
    with pytest.raises(SurveyorError, match=r"recent-and-best\(10, 20\) is for .* by episodes\."):
        StepReplay.create(VECTOR, agent.schedule)


@pytest.mark.parametrize("name", agents.REGISTRY)
def test_every_option_of_every_agent_says_what_it_is(name):
    kind = agents.find(name).load()
    described = options.descriptions(kind)
    for field in dataclasses.fields(kind):
        text = described.get(field.name, "")
        assert text.endswith("."), field.name
        assert text[0].isupper() or text[0] in "γφψπεκd", field.name


def test_a_subclass_describes_what_it_overrides():
    assert options.descriptions(HyperAgent)["discount"] == "γ."
    assert "released" in options.descriptions(sv.DQN)["discount"]
    same = [options.descriptions(kind)["hidden"] for kind in (SUPlus, sv.DQN)]
    assert same[0] == same[1]  # another default, and nothing said of it


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        (SU, {"theta": 0.0}, "theta must be a positive number, not 0."),
        (SU, {"theta": -1.0}, "theta must be a positive number, not -1."),
        (SUPlus, {"spread": float("nan")}, "spread must be a positive number, not nan."),
        (SUPlus, {"contraction": float("inf")},
         "contraction must be a positive number, not inf."),
        (SU, {"theta": 1e-50}, "theta must be between 1e-30 and 1e30, not 1e-50."),
        (SU, {"zeta": 1.1}, "zeta must be above 0 and at most 1, not 1.1."),
        (SUPlus, {"discount": 0.0}, "discount must be above 0 and at most 1, not 0."),
        (SU, {"features": 0}, "features must be at least 1, not 0."),
        (SUPlus, {"ensemble": 0}, "ensemble must be at least 1, not 0."),
        (SUPlus, {"bins": 0}, "bins must be at least 1, not 0."),
        (SUPlus, {"curiosity": -0.1}, "curiosity must be at least 0, not -0.1."),
        (SUPlus, {"contraction": 0.0}, "contraction must be a positive number, not 0."),
        (SUPlus, {"foresight": 1.5}, "foresight must be from 0 to 1, not 1.5."),
        (SUPlus, {"untried": -0.1}, "untried must be from 0 to 1, not -0.1."),
        (SUPlus, {"gradient_steps": -1}, "gradient_steps must be at least 0, not -1."),
        (SUPlus, {"replay": "recent-and-best(101, 0)"},
         "RECENT and BEST of recent-and-best must be at least 0, together at most "
         "batch_size = 100, not 101 and 0."),
        (sv.DQN, {"replay": "prioritised(0)"}, "α of prioritised(α) must be above 0, not 0."),
        (sv.DQN, {"replay": "uniforn"},
         "There is no replay strategy 'uniforn'; did you mean 'uniform'?"),
        (sv.DQN, {"epsilon_end": 1.5}, "epsilon_end must be from 0 to 1, not 1.5."),
        (sv.BootDQN, {"bootstrap": 0.0}, "bootstrap must be above 0 and at most 1, not 0."),
        (sv.PSRL, {"successors": 0}, "successors must be at least 1, not 0."),
        (sv.UBE, {"u_init": 0.0}, "u_init must be a positive number, not 0."),
    ],
)  # fmt: skip
def test_bad_hyperparameters_are_refused_in_one_sentence(kind, values, sentence):
    with pytest.raises(SurveyorError) as error:
        kind(**values)
    assert str(error.value) == sentence


@dataclasses.dataclass
class Choosing:
    """Options that no type checker watches, as in a user's process."""

    policy: Literal["joint", "marginal"] = "joint"
    size: int = 1


def test_a_choice_that_there_is_not_is_refused_with_those_there_are():
    options.require_valid(Choosing("marginal", 7))
    with pytest.raises(SurveyorError) as error:
        options.require_valid(Choosing("joined"))
    assert str(error.value) == "policy must be one of joint, marginal, not 'joined'."
