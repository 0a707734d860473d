"""Presets as data: complete, sourced, and with the relations that the paper states."""

import dataclasses

import pytest

import surveyor as sv
from surveyor import agents

PROBLEMS = {"tree", "chain", "minatar", "atari", "grid", "classic", "numbered"}
ALL = [(name, preset) for name, entry in agents.REGISTRY.items() for preset in entry.presets]


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_presets_name_options_of_their_agent_and_kinds_of_problems(name, preset):
    entry = agents.find(name)
    known = {field.name for field in dataclasses.fields(entry.load())}
    found = entry.presets[preset]
    assert found.source
    assert set(found.values) <= PROBLEMS
    for problem, values in found.values.items():
        assert set(values) <= known, problem


@pytest.mark.parametrize("preset", ["released", "text"])
def test_su_s_presets_cover_all_problems(preset):
    assert set(agents.find("su").presets[preset].values) == PROBLEMS


def test_su_s_default_preset_is_the_released_code():
    for problem in PROBLEMS:
        assert sv.SU.preset(problem) == sv.SU.preset(problem, "released")


def test_both_sources_of_su_share_table_4_and_differ_where_the_paper_says():
    text, released = (sv.SU.preset("atari", name) for name in ("text", "released"))
    for name in ("features", "hidden", "learning_rate", "target_every", "batch_size", "max_norm"):
        assert getattr(text, name) == getattr(released, name), name
    # Table 4 counts the target's updates in environment steps: every 10,000 of them.
    assert text.target_every * text.train_every == 10_000
    assert (text.normalise, released.normalise) == ("each", "together")
    assert (text.q_target, released.q_target) == ("policy", "max")
    assert text.psi_relu
    assert text.zeta < 1 == released.zeta


def test_the_posterior_of_the_released_tree_takes_theta_over_beta_of_one_in_a_million():
    released, text = (sv.SU.preset("tree", name) for name in ("released", "text"))
    assert released.theta / released.beta == pytest.approx(1e-6)
    assert text.theta / text.beta == pytest.approx(1e7)  # table 2


def test_bootstrapped_dqn_at_25_times_the_cost_takes_25_times_the_steps():
    for source in ("paper", "released"):
        one, many = (sv.BootDQN.preset("tree", f"{source}_{n}x") for n in (1, 25))
        assert many.gradient_steps == 25 * one.gradient_steps
        assert many.bootstrap == 1.0
    tree = sv.BootDQN.preset("tree", "tree_25x")
    assert tree == dataclasses.replace(sv.BootDQN.preset("tree", "paper_25x"), prior_weight=10.0)


def test_all_agents_share_sizes_and_rates_on_minatar():
    same = ("discount", "hidden", "target_every", "batch_size", "replay_capacity", "train_every")
    kinds = (sv.SUPlus, sv.BootDQN, sv.UBE, sv.BDQN, sv.DQN, sv.SU)
    values = {tuple(getattr(kind.preset("minatar"), name) for name in same) for kind in kinds}
    assert len(values) == 1
    assert sv.SU.preset("minatar").schedule.envs == 1  # the paper plays one at a time
