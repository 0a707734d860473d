"""dm_env environments and bsuite's experiments, with bsuite itself as the oracle."""

import dataclasses

import dm_env
import jax
import numpy as np
import pytest
from bsuite import bsuite
from bsuite.environments.catch import Catch
from dm_env import specs
from gymnasium import spaces

import surveyor as sv
from surveyor.envs import families
from surveyor.envs.dm import DmEnv, adapted
from surveyor.errors import SurveyorError
from surveyor.runs import api
from surveyor.runs.run import Run

QUICK = dataclasses.replace(sv.agents.preset("dqn", "classic"), hidden=16, warmup=64, envs=2)


@pytest.mark.parametrize(
    "found", ["catch/0", "cartpole_swingup/5", "memory_len/3", "catch_noise/9"]
)
def test_step_by_step_the_same_as_bsuite(found):
    name = f"bsuite/{found}"
    (env,) = families.find(name).make(name, None).make(1)._envs
    experiment, settings = found.partition("/")[0], bsuite.sweep.SETTINGS[found]
    oracle, rng = bsuite.load(experiment, settings), np.random.default_rng(0)
    noise = getattr(oracle, "_env", oracle) is not oracle
    ends = 0
    for seed in (3, 4, 3):
        obs, _ = env.reset(seed=seed)
        oracle._rng = np.random.RandomState(seed)
        if noise:
            oracle._env._rng = np.random.RandomState(seed)
        expected = oracle.reset()
        for _ in range(60):
            np.testing.assert_array_equal(obs, np.squeeze(expected.observation, axis=None))
            action = int(rng.integers(env.action_space.n))
            obs, reward, terminated, truncated, _ = env.step(action)
            expected = oracle.step(action)
            assert reward == expected.reward
            assert (terminated or truncated) == expected.last()
            if expected.last():
                assert terminated == (expected.discount == 0)
                ends += 1
                break
    assert ends > 0 or experiment == "cartpole_swingup"


class Limited(dm_env.Environment):
    """Ends after three steps if the action was 5, and is cut off otherwise."""

    def __init__(self, seed=0):
        self._rng = np.random.default_rng(seed)

    def reset(self):
        self.t = 0
        return dm_env.restart(self._observe())

    def step(self, action):
        self.t += 1
        kind = dm_env.termination if action == 5 else dm_env.truncation
        return (
            kind(1.0, self._observe()) if self.t == 3 else dm_env.transition(None, self._observe())
        )

    def _observe(self):
        return self._rng.integers(0, 9, (1, 1, 4)).astype(np.int32)

    def observation_spec(self):
        return specs.BoundedArray((1, 1, 4), np.int32, 0, 8)

    def action_spec(self):
        return specs.BoundedArray((), np.int32, 4, 5)


def test_the_discount_of_the_last_step_tells_terminations_from_truncations():
    env = DmEnv(Limited())
    assert env.action_space == spaces.Discrete(2, start=4)
    assert env.observation_space == spaces.Box(0, 8, (4,), np.int32)
    for action, ends in ((5, (True, False)), (4, (False, True))):
        first, _ = env.reset(seed=1)
        assert first.shape == (4,)
        steps = [env.step(action) for _ in range(3)]
        assert [step[1] for step in steps] == [0.0, 0.0, 1.0]
        assert steps[0][2:4] == (False, False)
        assert steps[2][2:4] == ends
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)


def test_specs_become_spaces():
    class Many(Limited):
        def observation_spec(self):
            seen = specs.Array((2, 3), np.float32), specs.Array((2,), bool)
            return {"a": seen[0], "b": seen[1], "c": specs.DiscreteArray(7)}

    space = DmEnv(Many()).observation_space
    assert space["a"].shape == (2, 3)
    assert space["b"] == spaces.Box(0, 1, (2,), np.uint8)
    assert space["c"] == spaces.Discrete(7)
    assert adapted(5) == 5


def test_any_dm_env_object_and_a_function_that_returns_one_can_be_trained(tmp_path):
    run = sv.train("uniform", Catch(seed=1), steps=100, out=tmp_path)
    assert (run.config.env, run.runner.spec.shape) == ("Catch", (10, 5))
    run = sv.train("uniform", Limited, steps=100, out=tmp_path)
    assert (run.config.env, run.runner.spec.num_actions) == ("Limited", 2)
    assert api.configure("dqn", Catch(seed=1), steps=9).agent.schedule.envs == 1
    env = Catch(seed=1)
    with pytest.raises(SurveyorError, match="returns the same environment every time"):
        sv.train(QUICK, lambda: env, steps=100)


def test_continuous_actions_are_refused():
    class Continuous(Limited):
        def action_spec(self):
            return specs.BoundedArray((), np.float32, 0, 1)

    with pytest.raises(SurveyorError, match="has continuous actions, "):
        sv.train(QUICK, Continuous, steps=10)


def test_a_resumed_run_ends_in_the_same_bits(tmp_path):
    runs = [
        sv.train("uniform", "bsuite/umbrella_length/2", steps=300, out=tmp_path / w) for w in "ab"
    ]
    stopped = api.begin(runs[0].config, tmp_path / "stopped")
    for i, _ in enumerate(stopped.advance()):
        if i == 30:
            break
    stopped.checkpoint()
    assert 0 < Run.open(stopped.folder.path).result["steps"] < 300
    resumed = sv.resume(stopped.folder.path)
    leaves = [jax.tree.leaves(run.loop) for run in (*runs, resumed)]
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[1], strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[2], strict=True))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bsuite/catsh/0", "did you mean 'bsuite/catch/0'?"),
        ("bsuite/catch/99", "there are 'bsuite/catch/0' to 'bsuite/catch/19'."),
        ("bsuite/catch", "there are 'bsuite/catch/0' to 'bsuite/catch/19'."),
    ],
)
def test_a_wrong_id_is_answered_with_near_ones(name, hint):
    with pytest.raises(SurveyorError) as error:
        families.find(name).canonical(name)
    assert str(error.value) == f"There is no environment '{name}'; {hint}"


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("bandit/0", 10_000), ("catch/3", 90_000), ("deep_sea/2", 140_000),
        ("cartpole/0", 1_000_000), ("umbrella_length/0", 10_000), ("memory_len/0", 20_000),
    ],
)  # fmt: skip
def test_budgets_are_bsuite_s_episodes_times_their_length(name, budget):
    assert families.find(f"bsuite/{name}").default_budget(f"bsuite/{name}") == budget
