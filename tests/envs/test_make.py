"""Names, and Gymnasium's view of the environments."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import surveyor as sv
import surveyor.envs.gymnasium  # registers the ids


@pytest.mark.parametrize("name", ["Tree-10", "TiedTree-3", "Chain-2", "Tree-1"])
def test_a_name_makes_the_environment_of_that_name(name):
    assert sv.envs.make(name)[0].name == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Trea-10", "did you mean 'Tree-10'?"),
        ("tree-7", "did you mean 'Tree-7'?"),
        ("Chian-5", "did you mean 'Chain-5'?"),
        ("CartPole-v1", "There is no environment 'CartPole-v1'"),
        ("Tree-0", "at least 1, not '0'"),
        ("Tree-ten", "not 'ten'; for example 'Tree-10'"),
        ("Tree--3", "not '-3'"),
        ("Chain-1.5", "not '1.5'"),
        ("Tree", "which is missing"),
        ("", "There is no environment ''"),
        ("Chain-99999999", "too large"),
    ],
)
def test_a_bad_name_is_answered_in_one_sentence(name, hint):
    with pytest.raises(sv.SurveyorError) as error:
        sv.envs.make(name)
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("family", ["Tree", "TiedTree", "Chain"])
@pytest.mark.filterwarnings("ignore:.*render_modes.*:UserWarning")
def test_gymnasium_checks_them(family):
    check_env(gymnasium.make(f"surveyor/{family}-v0", size=6).unwrapped)


def test_gymnasium_makes_them_from_the_module_s_name_without_an_import_before():
    code = """
import gymnasium
env = gymnasium.make("surveyor.envs.gymnasium:surveyor/Tree-v0", size=12)
print(env.observation_space.n)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout == "25\n", answer.stderr


def play(env, actions, seed=None):
    trace = [int(env.reset(seed=seed)[0])]
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        assert not truncated
        trace.append((int(obs), reward, terminated))
        if terminated:
            break
    return trace


def test_gymnasium_mapping_belongs_to_the_seed_and_stays_over_episodes():
    env = gymnasium.make("surveyor/Tree-v0", size=100)
    actions = np.random.default_rng(0).integers(0, 2, 100)
    firsts = {seed: play(env, actions, seed) for seed in range(20)}
    assert len({str(trace) for trace in firsts.values()}) > 3
    for seed, trace in firsts.items():
        assert play(env, actions, seed) == trace
        assert play(env, actions) == trace  # a plain reset keeps the mapping
        assert play(gymnasium.make("surveyor/Tree-v0", size=100, seed=seed), actions) == trace


def test_gymnasium_and_functional_environment_agree():
    _, params = sv.envs.make("Tree-40", 5)
    env = gymnasium.make("surveyor/Tree-v0", size=40)
    trace = play(env, [int(a) for a in params.mapping], seed=5)
    assert trace[-1] == (80, 1.0, True)


def test_gymnasium_refuses_an_action_that_there_is_not():
    env = gymnasium.make("surveyor/Chain-v0", size=4, disable_env_checker=True).unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match="must be in Discrete"):
        env.step(np.int64(2))
