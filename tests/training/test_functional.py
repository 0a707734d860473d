"""Functional environments learnt by steps, in one compiled program."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv
from surveyor.envs import minatar
from surveyor.errors import SurveyorError
from surveyor.runs import api
from surveyor.runs.run import Run

QUICK = dataclasses.replace(
    sv.SUPlus.preset("minatar"), hidden=16, ensemble=4, warmup=64, replay_capacity=2000, n_step=2,
    replay="prioritised(0.5)",
)  # fmt: skip
PLAIN = dataclasses.replace(QUICK, warmup=10**6, envs=4, n_step=1, replay="uniform")
"""Never learns."""


def test_all_five_games_have_pictures_of_ones_and_zeros_and_play():
    for game in minatar.GAMES:
        env = minatar.FAMILY.make(f"MinAtar/{game}", None)
        assert env.spec.shape[:2] == (10, 10)
        assert env.spec.dtype == "bool"
        obs, state = env.reset(jax.random.key(0))
        step = jax.eval_shape(env.step, jax.random.key(1), state, jnp.int32(0))
        assert step[0].shape == step[5].shape == obs.shape
        shapes = [jax.tree.map(lambda x: (x.shape, x.dtype), s) for s in (state, step[1])]
        assert shapes[0] == shapes[1]


@pytest.mark.usefixtures("optimised")
def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path):
    whole = sv.train(QUICK, "MinAtar/Breakout", steps=2000, out=tmp_path / "whole")
    assert whole.finished
    stopped = api.begin(whole.config, tmp_path / "stopped")
    for i, _ in enumerate(stopped.advance()):
        if i == 60:
            break
    stopped.checkpoint()
    path = stopped.folder.path
    assert 0 < Run.open(path).result["steps"] < 2000
    before = len(Run.open(path).metrics)
    resumed = sv.resume(path, tensorboard=True)
    leaves = [jax.tree.leaves(run.loop) for run in (whole, resumed)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))
    timeless = [
        [{k: v for k, v in r.items() if k != "steps_per_second"} for r in run.metrics]
        for run in (whole, resumed)
    ]
    assert timeless[0] == timeless[1]
    logged = set(whole.metrics[-1])
    assert logged >= {
        "return", "length", "q_loss", "q_mean", "supposed", "curiosity", "steps_per_second",
        "step", "episodes",
    }  # fmt: skip
    assert whole.result["gradient_steps"] == (2000 - 64) // 4
    (board,) = (path / "tensorboard").iterdir()
    written = board.read_bytes().count(b"supposed")
    assert written == len(resumed.metrics) - before > 0  # only what is new
    outcome = sv.evaluate(whole, episodes=3)
    assert len(outcome.returns) == 3
    assert outcome.optimal is None


class Counter(NamedTuple):
    value: jax.Array


class Space(NamedTuple):
    n: int


class Walk:
    """A functional environment of one's own: count to three, or be cut off after four steps when
    the first step did not count."""

    default_params = None

    def __init__(self, reward=1.0):
        self.reward = reward

    def action_space(self, params):
        return Space(2)

    def observation_space(self, params):
        return Space(0)

    def reset(self, key, params):
        state = Counter(jnp.zeros(2, jnp.int32))
        return state.value.astype(jnp.float32), state

    def step(self, key, state, action, params):
        time, place = state.value
        place = place + ((time > 0) | (action == 1))
        value = jnp.stack([time + 1, place]).astype(jnp.int32)
        terminated = place == 3
        truncated = (time + 1 == 4) & ~terminated
        new = jnp.where(terminated | truncated, 0, value)
        info = {"final_observation": value.astype(jnp.float32)}
        return new.astype(jnp.float32), Counter(new), self.reward, terminated, truncated, info


def test_a_functional_environment_of_one_s_own_reaches_the_replay_as_it_is():
    run = sv.train(PLAIN, Walk(), steps=400)
    u = np.random.default_rng(0).random(3000, np.float32)
    batch = run.loop.replay.sample(jnp.asarray(u))
    rows = zip(batch.obs, batch.next_obs, batch.terminated, strict=True)
    seen = {(*map(int, o), *map(int, n), bool(t)) for o, n, t in rows}
    # (time, place) before and after, and whether it was the end: only place 3 is.
    assert seen == {
        (0, 0, 1, 0, False), (0, 0, 1, 1, False), (1, 0, 2, 1, False), (1, 1, 2, 2, False),
        (2, 1, 3, 2, False), (2, 2, 3, 3, True), (3, 2, 4, 3, True),
    }  # fmt: skip


def test_an_environment_of_the_same_name_is_not_taken_for_another():
    means = [
        np.mean(sv.train(PLAIN, Walk(r), steps=40).loop.replay.reward[:10]) for r in (1.0, 7.0)
    ]
    assert means == [1.0, 7.0]


def test_functional_environments_that_will_not_do(tmp_path):
    agent = dataclasses.replace(QUICK, envs=4)
    with pytest.raises(SurveyorError, match="reward that is not a finite number"):
        sv.train(agent, Walk(jnp.nan), steps=400, out=tmp_path)

    class Continuous(Walk):
        def action_space(self, params):
            return ()

    with pytest.raises(SurveyorError, match="continuous actions"):
        sv.train(QUICK, Continuous(), steps=10)

    class Blind(Walk):
        def step(self, key, state, action, params):
            obs, *rest = super().step(key, state, action, params)
            return obs * jnp.nan, *rest

    with pytest.raises(SurveyorError, match="observation that is not finite"):
        sv.train(agent, Blind(), steps=400)

    class Older(Walk):
        def step(self, key, state, action, params):
            obs, new, reward, terminated, *_ = super().step(key, state, action, params)
            return obs, new, reward, terminated

    with pytest.raises(SurveyorError, match=r"A step of Older does not follow gymnax 1\.x"):
        sv.train(agent, Older(), steps=10)


def test_an_environment_may_come_with_its_parameters():

    class Paid(Walk):
        default_params = 1.0

        def step(self, key, state, action, params):
            obs, new, _, *rest = super().step(key, state, action, params)
            return obs, new, params, *rest

    run = sv.train(PLAIN, (Paid(), 3.0), steps=40)
    assert run.config.env == "Paid"
    assert np.mean(run.loop.replay.reward[:10]) == 3.0


def test_evaluations_come_at_their_steps_and_change_neither_records_nor_training():
    agent = sv.DQN(batch_size=8, warmup=20, envs=2, train_every=4, gradient_steps=1)
    evaluate = sv.Evaluate(every=90, episodes=2)
    alone = sv.train(agent, "DeepSea-4", steps=3_000, seed=1)
    watched = sv.train(agent, "DeepSea-4", steps=3_000, seed=1, callbacks=[evaluate])
    times = [record["at"] for record in evaluate.records]
    assert times == [-(-90 * i // 4) * 4 for i in range(1, 34)] + [3_000]  # whole rounds of 4
    assert times[0] % 12  # not at a record
    timeless = [
        [{**record, "steps_per_second": None} for record in run.metrics] for run in (alone, watched)
    ]
    assert [record["step"] for record in timeless[0]] == list(range(12, 3_001, 12))
    assert str(timeless[0]) == str(timeless[1])
    assert eqx.tree_equal(alone.state, watched.state)
