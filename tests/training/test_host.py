"""Environments that step in Python: what reaches the replay, and resuming."""

import dataclasses
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import surveyor as sv
from surveyor.envs import objects
from surveyor.envs.host import GymnasiumEnvs
from surveyor.envs.vector import VectorEnvs
from surveyor.errors import SurveyorError
from surveyor.replay.steps import ENDED
from surveyor.runs.run import Run
from tests.training.scripted import QUICK, Scripted


def transitions(run):
    """Everything that the replay can show, as (episode, step, reward, next, terminated)."""
    u = np.random.default_rng(0).random(4000)
    batch = run.loop.replay.sample(u)
    rows = zip(batch.obs, batch.reward, batch.next_obs, batch.terminated, strict=True)
    return {(*map(int, o), float(r), *map(int, n), bool(t)) for o, r, n, t in rows}


def expected(episodes):
    found = set()
    for episode in range(episodes):
        length = 3 if episode % 2 == 0 else 5
        for step in range(length):
            over = length == 3 and step == 2
            found.add((episode, step, float(step + 1), episode, step + 1, over))
    return found


@pytest.mark.parametrize("kind", ["function", "same_step", "next_step", "disabled"])
def test_what_followed_is_never_from_another_episode_and_only_termination_ends(kind):
    agent = dataclasses.replace(QUICK, warmup=10**6)
    if kind == "function":
        env = Scripted
    else:
        mode = AutoresetMode[kind.upper()]
        env = SyncVectorEnv([Scripted, Scripted], autoreset_mode=mode)
    run = sv.train(agent, env, steps=80)
    seen = transitions(run)
    assert seen <= expected(20)
    assert expected(6) <= seen
    # Truncation is no end, and what followed it is the episode's own last observation.
    assert (1, 4, 5.0, 1, 5, False) in seen
    assert (0, 2, 3.0, 0, 3, True) in seen
    returns = [record["return"] for record in run.metrics if record["return"] is not None]
    assert set(returns) <= {6.0, 15.0, 10.5}


class Redrawing(sv.HyperAgent):
    """Draws a new index after every two steps."""

    @property
    def schedule(self):
        return dataclasses.replace(super().schedule, redraw_every=2)


def test_one_index_an_environment_redrawn_when_its_episode_ends():
    options = {"hidden": 16, "dimensions": 8, "warmup": 10**6, "envs": 2, "train_every": 2}
    agent = sv.HyperAgent(**options)
    run = sv.train(agent, Scripted, steps=2)
    indices = [np.asarray(run.loop.learning.index)]
    for chunk in run.runner.chunks(run.loop):
        indices.append(np.asarray(chunk.loop.learning.index))
        break
    assert indices[0].shape == (2, 8)
    assert not np.allclose(indices[0][0], indices[0][1])

    def history(agent, steps):
        runs = [sv.train(agent, Scripted, steps=2 * n) for n in range(1, steps + 1)]
        first = [np.asarray(run.loop.learning.index)[0] for run in runs]
        return [not np.array_equal(a, b) for a, b in itertools.pairwise(first)]

    changes = history(agent, 5)  # between steps 1-2, 2-3, …: the first episode has three
    assert changes == [False, True, False, False]
    every = history(Redrawing(**options), 5)
    assert every == [True, True, False, True]


def test_killed_and_resumed_ends_in_the_same_bits(tmp_path):
    whole = sv.train(QUICK, "CartPole-v1", steps=400, out=tmp_path / "whole")
    config = whole.config
    command = [
        sys.executable,
        "-c",
        KILLED,
        str(tmp_path / "killed"),
        json.dumps(dataclasses.asdict(QUICK)),
    ]
    process = subprocess.Popen(command, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    path = tmp_path / "killed" / config.name
    deadline = time.monotonic() + 120
    while not (path / "checkpoint" / "state.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    begun = Run.open(path)
    assert 0 < begun.result["steps"] < 400
    resumed = sv.resume(path)
    assert resumed.finished
    leaves = [jax.tree.leaves((run.loop.learning, run.loop.replay)) for run in (whole, resumed)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))
    np.testing.assert_array_equal(whole.loop.obs, resumed.loop.obs)

    def timeless(run):
        return [{k: v for k, v in r.items() if k != "steps_per_second"} for r in run.metrics]

    assert timeless(whole) == timeless(resumed)
    look = Run.open(path, replay=False)  # what was learnt is all there, the replay is not
    assert all(map(np.array_equal, *map(jax.tree.leaves, (look.state, whole.state))))
    assert look.loop.replay.action is None
    with pytest.raises(SurveyorError, match="without its replay, so it cannot be saved"):
        look.save(tmp_path / "copy")


KILLED = """
import json, sys, time
import surveyor as sv
import surveyor.runs.run as run
run.CHECKPOINT_SECONDS = 0.0
agent = sv.SUPlus(**json.loads(sys.argv[2]))
def slowly(run):
    time.sleep(0.02)
sv.train(agent, "CartPole-v1", steps=400, out=sys.argv[1], report=slowly)
"""


def test_other_seeds_other_results_and_the_same_seed_the_same():
    runs = [sv.train(QUICK, "CartPole-v1", steps=120, seed=seed) for seed in (0, 0, 1)]
    states = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(run.state)]) for run in runs]
    assert np.array_equal(states[0], states[1])
    assert not np.array_equal(states[0], states[2])


def test_an_environment_that_fails_or_gives_nan_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    for env, sentence in (
        (lambda: Scripted(fails_at=150), "failed in step: ValueError: the cable is out"),
        (lambda: Scripted(reward=float("nan")), "reward that is not a finite number"),
        (lambda: Scripted(sees=np.nan), "an observation that is not finite"),
        (lambda: 1 / 0, "could not be made: ZeroDivisionError"),
        (lambda: 5, "returned int, which is not a Gymnasium environment"),
    ):
        agent = dataclasses.replace(QUICK, envs=1, train_every=1)
        with pytest.raises(SurveyorError, match=sentence):
            sv.train(agent, env, steps=400, out=tmp_path)
    path = next(tmp_path.iterdir())
    assert Run.open(path, Scripted).config.steps == 400


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("Pendulum-v1", "has continuous actions, Box"),
        ("CartPole-v9", "no environment 'CartPole-v9'; did you mean 'CartPole-v"),
        ("nonsense", "no environment 'nonsense'"),
        ("no_such_package:Env-v0", "needs the package 'no_such_package'"),
        ("MinAtar/Pong", "no environment 'MinAtar/Pong'; "),
        ("ALE/Pongo", "no Atari game 'Pongo'; did you mean 'pong'"),
    ],
)
def test_environments_that_will_not_do(env, sentence):
    with pytest.raises(SurveyorError, match=sentence):
        sv.train("su-plus", env, steps=10)


def test_budgets_and_schedules_that_will_not_do():
    with pytest.raises(SurveyorError, match="learnt by steps: give steps"):
        sv.train("su-plus", "CartPole-v1", episodes=10)
    with pytest.raises(SurveyorError, match="learnt by episodes: give episodes"):
        sv.train("su-plus", "Tree-4", steps=10)
    with pytest.raises(SurveyorError, match="set train_every to at least 1"):
        sv.train(sv.SUPlus(), "CartPole-v1", steps=10)
    with pytest.raises(SurveyorError, match="do not fit together"):
        sv.train(dataclasses.replace(QUICK, envs=3, train_every=4), "CartPole-v1", steps=10)
    with pytest.raises(SurveyorError, match="learns by whole episodes"):
        sv.train("psrl", "CartPole-v1", steps=10)
    with pytest.raises(SurveyorError, match="no protocol 'paper'; there is: none"):
        sv.train("su-plus", "CartPole-v1", steps=10, protocol="paper")


def test_a_gymnasium_environment_may_be_called_as_ours_are():
    gymnasium.register("Chain-v7", Scripted, disable_env_checker=True)
    try:
        assert sv.train(QUICK, "Chain-v7", steps=50).config.steps == 50
        with pytest.raises(SurveyorError, match="size in 'Chain-v8' must be a whole number"):
            sv.train(QUICK, "Chain-v8", steps=50)
    finally:
        del gymnasium.registry["Chain-v7"]


@pytest.mark.usefixtures("optimised")
def test_su_plus_solves_a_lake_of_numbered_states():
    make = lambda: gymnasium.make("FrozenLake-v1", is_slippery=False)  # noqa: E731
    run = sv.train("su-plus", make, steps=8_000)
    assert run.agent == sv.SUPlus.preset("numbered")
    assert sv.evaluate(run, 3).mean_return == 1.0


def test_numbered_states_and_prioritised_n_step_learning_run_in_the_host_runner():
    several = {"n_step": 3, "replay": "prioritised(0.6)"}
    small = {"envs": 2, "train_every": 2, "warmup": 40, "replay_capacity": 400}
    lake = dataclasses.replace(sv.SUPlus.preset("numbered"), **several, **small)
    run = sv.train(lake, "FrozenLake-v1", steps=120)
    assert run.runner.spec.tabular
    assert run.result["gradient_steps"] > 0
    assert run.predict(3)[0].shape == ()
    run = sv.train(dataclasses.replace(QUICK, **several), "CartPole-v1", steps=120)
    assert float(np.max(run.loop.replay.priority)) > 0
    assert run.predict(np.zeros((5, 4)))[0].shape == (5,)
    assert run.q_posterior(np.zeros((3, 4))).covariance.shape == (6, 6)
    with pytest.raises(SurveyorError, match="shape"):
        run.predict(np.zeros(3))
    outcome = sv.evaluate(run, episodes=5)
    assert len(outcome.returns) == 5
    assert outcome.returns == [float(n) for n in outcome.lengths]


def test_environments_given_as_objects_are_tested_on_copies(tmp_path):
    env = Scripted()
    run = sv.train("su-plus", env, steps=40)  # a name takes as many environments as there are
    assert run.agent.envs == 1
    before = env.total
    assert len(sv.evaluate(run, episodes=10).returns) == 10
    assert env.total == before
    many = SyncVectorEnv([Scripted] * 3)
    run = sv.train("dqn", many, steps=60)
    assert (run.agent.envs, run.agent.train_every) == (3, 3)
    before = [one.total for one in many.envs]
    assert len(sv.evaluate(run, episodes=4).returns) == 4
    assert [one.total for one in many.envs] == before
    names = [
        objects.name_of(lambda name=name: gymnasium.make(*name[:1], **name[1]))
        for name in (("CartPole-v1", {}), ("FrozenLake-v1", {"is_slippery": False}))
    ]
    assert names[0] == "CartPole-v1"
    assert names[1].startswith("FrozenLake-v1")
    assert "is_slippery=False" in names[1]


def test_a_vector_environment_is_sent_the_actions_that_it_has():
    class Shifted(Scripted):
        action_space = spaces.Discrete(2, start=5)

        def step(self, action):
            assert action in (5, 6)
            return super().step(action)

    envs = VectorEnvs("x", SyncVectorEnv([Shifted] * 2))
    envs.begin(0)
    assert envs.step(np.array([0, 1])).reward.tolist() == [1.0, 1.0]


def test_a_resumed_vector_environment_begins_new_episodes_and_says_so_to_the_replay(tmp_path):
    agent = dataclasses.replace(QUICK, n_step=3)
    make = lambda: SyncVectorEnv([Scripted] * 2)  # noqa: E731
    whole = sv.train(agent, make(), steps=100, out=tmp_path)
    run = Run.open(whole.folder.path, make())
    assert np.all(run.loop.replay.flags[(int(run.loop.replay.written) - 1) % 200] & ENDED)
    assert np.all(np.asarray(run.loop.learning.episodes.lengths) == 0)


def test_a_vector_environment_of_another_size_is_refused():
    env = SyncVectorEnv([Scripted] * 3)
    with pytest.raises(SurveyorError, match="has 3 environments and the agent plays 2"):
        sv.train(QUICK, env, steps=10)
    assert VectorEnvs("x", env).spec.num_actions == 2
    assert GymnasiumEnvs("x", Scripted, 1).spec.shape == (2,)
