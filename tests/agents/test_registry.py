"""Agents by name, and agents of a user's own."""

import pytest

import surveyor as sv
from surveyor import agents
from surveyor.agents import Entry
from surveyor.agents.presets import Preset
from surveyor.errors import SurveyorError


class Mine(sv.Uniform):
    """An agent of a user's own."""

    courage: float = 0.5


@pytest.fixture
def registered():
    entry = Entry(
        "mine", "Mine", Mine, "One's own.", {"bold": Preset("us", {"tree": {"courage": 1.0}})}
    )
    agents.register(entry)
    yield entry
    del agents.REGISTRY["mine"]


def test_every_name_leads_to_its_class_and_back():
    for name, entry in agents.REGISTRY.items():
        kind = entry.load()
        assert issubclass(kind, sv.Agent)
        assert agents.entry_of(kind) is agents.find(name)
        assert agents.name_of(kind()) == name
        assert entry.title
        assert entry.summary.endswith(".")


def test_su_plus_is_the_default_agent():
    assert agents.find(agents.DEFAULT).load() is sv.SUPlus


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(SurveyorError, match="no agent 'su_plus'; did you mean 'su-plus'"):
        agents.find("su_plus")
    with pytest.raises(SurveyorError, match="preset of su 'relased'; did you mean 'released'"):
        agents.preset("su", "tree", "relased")


def test_a_preset_is_refused_where_it_is_not_meant_for():
    with pytest.raises(SurveyorError) as error:
        sv.BootDQN.preset("chain", "paper_1x")
    assert str(error.value) == "The preset 'paper_1x' of bootdqn is for tree, not chain."


def test_the_default_preset_serves_other_problems_with_the_class_defaults():
    assert sv.DQN.preset("tree") == sv.DQN()
    assert sv.Uniform.preset("atari") == sv.Uniform()


def test_hyperparameters_of_another_version_are_refused_in_one_sentence():
    with pytest.raises(SurveyorError, match="'su' of this version of surveyor has other hyper"):
        agents.make("su", {"temperature": 1.0})
    assert agents.make("su", {"theta": 2.0}) == sv.SU(theta=2.0)


def test_a_user_s_agent_has_a_name_and_presets_like_ours(registered):
    assert agents.find("mine") is registered
    assert Mine.preset("tree") == Mine(courage=1.0)
    assert agents.preset("mine", "tree", "bold") == Mine(courage=1.0)
    assert agents.name_of(Mine()) == "mine"
    agents.register(registered)  # the same once more, as when a module is imported twice
    with pytest.raises(SurveyorError, match="There is an agent 'mine' already"):
        agents.register(Entry("mine", "Other", sv.Uniform, "Another."))


class MyOwnSUAgent(sv.Uniform):
    """Explore in a way of its own.

    With more to say about it.
    """


def test_a_class_that_nobody_registered_is_named_after_itself():
    try:
        assert agents.name_of(MyOwnSUAgent()) == "my-own-su-agent"
        entry = agents.find("my-own-su-agent")
        assert entry.load() is MyOwnSUAgent
        assert (entry.title, entry.summary) == ("MyOwnSUAgent", "Explore in a way of its own.")
        assert agents.entry_of(MyOwnSUAgent) is entry
        again = type(MyOwnSUAgent)("MyOwnSUAgent", (sv.Uniform,), {"__module__": __name__})
        assert agents.name_of(again()) == "my-own-su-agent"  # defined again, as in a notebook
    finally:
        del agents.REGISTRY["my-own-su-agent"]


def test_a_name_that_another_class_has_is_refused():
    class SUPlus(sv.Uniform):
        """Not the library's."""

    with pytest.raises(SurveyorError, match="There is an agent 'su-plus' already, surveyor"):
        agents.name_of(SUPlus())


def test_a_kind_of_problem_that_there_is_not_is_refused():
    with pytest.raises(SurveyorError, match=r"no kind of problem 'tre'; did you mean 'tree'\?"):
        sv.SU.preset("tre")
    assert sv.SU.preset("tree") == sv.SU.preset("tree", "released")
