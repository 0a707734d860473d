"""Turns between two steps of the environments: one compiled call, in the right order."""

import dataclasses

import numpy as np
import pytest

import surveyor as sv
from surveyor.replay.steps import StepReplay
from surveyor.training.turns import UnderWay


@pytest.mark.parametrize("updates", [1, 3])
def test_a_round_is_one_compiled_call(monkeypatch, updates):
    calls = []
    take = UnderWay.take

    def counted(self, seen, batches, ahead):
        learnt = 0 if batches is None else len(batches.action)
        calls.append((seen is not None, learnt, ahead is not None))
        return take(self, seen, batches, ahead)

    monkeypatch.setattr(UnderWay, "take", counted)
    agent = dataclasses.replace(
        sv.DQN.preset("classic"), hidden=4, envs=2, train_every=4, gradient_steps=updates, warmup=8
    )
    sv.train(agent, "CartPole-v1", steps=16)
    chosen, acted, learnt = (False, 0, True), (True, 0, True), (True, updates, True)
    assert calls == [chosen, acted, acted, acted, acted, acted, learnt, acted, learnt]


def test_priorities_follow_every_gradient_step(monkeypatch):
    drawn = []
    update = StepReplay.update_priorities

    def watched(self, number, errors):
        drawn.append(np.asarray(errors))
        return update(self, number, errors)

    monkeypatch.setattr(StepReplay, "update_priorities", watched)
    agent = dataclasses.replace(
        sv.DQN.preset("classic"), hidden=4, envs=2, train_every=2, gradient_steps=2, warmup=8
    )
    agent = dataclasses.replace(agent, replay="prioritised(0.6)")
    sv.train(agent, "CartPole-v1", steps=16)
    assert len(drawn) == 8
    assert all(errors.shape == (agent.batch_size,) for errors in drawn)


def test_the_replay_of_the_host_is_written_in_place():
    replay = StepReplay.create(
        sv.EnvSpec(0, 2, shape=(3,), dtype="float32"), sv.Schedule(capacity=8), host=True
    )
    obs, flag = np.ones((1, 3), np.float32), np.zeros(1, bool)
    step = sv.Transition(obs, np.ones(1, np.int32), np.ones(1, np.float32), obs, flag)
    assert replay.add(step, flag, flag) is replay
    assert replay.count == 1
    assert replay.obs[0].tolist() == obs.tolist()
