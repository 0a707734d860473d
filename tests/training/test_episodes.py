"""The training loop of runs by episodes, and its runner."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv
from surveyor.runs.run import Run
from surveyor.training import episodes

FAST = dataclasses.replace(
    sv.SUPlus.preset("tree"), ensemble=4, batch_size=16, gradient_steps=2,
    replay="recent-and-best(4, 0)",
)  # fmt: skip


def leaves(run):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(run.loop)]


def identical(a, b):
    return all(np.array_equal(x, y) for x, y in zip(leaves(a), leaves(b), strict=True))


def test_same_seed_same_bits_and_another_seed_other_bits():
    first, again, other = (
        sv.train(FAST, "Tree-6", seed=seed, episodes=30, stop_when_solved=False)
        for seed in (4, 4, 5)
    )
    assert identical(first, again)
    assert first.metrics == again.metrics
    assert not identical(first, other)


def test_chunks_change_nothing(monkeypatch):
    whole = sv.train(FAST, "Tree-6", episodes=47, stop_when_solved=False)
    monkeypatch.setattr(episodes, "CHUNK", 1)
    one_by_one = sv.train(FAST, "Tree-6", episodes=47, stop_when_solved=False)
    assert identical(whole, one_by_one)
    assert whole.metrics == one_by_one.metrics


def test_records_cover_every_episode_and_the_budget_is_kept():
    run = sv.train(FAST, "Tree-6", episodes=47, stop_when_solved=False)
    assert [record["episode"] for record in run.metrics] == [10, 20, 30, 40, 47]
    assert [len(record["returns"]) for record in run.metrics] == [10, 10, 10, 10, 7]
    assert run.metrics[-1]["test_return"] is None
    assert all(record["test_return"] in (0.0, 1.0) for record in run.metrics[:-1])
    assert run.result["episodes"] == 47
    assert run.result["gradient_steps"] == 94
    lengths = [x for record in run.metrics for x in record["lengths"]]
    assert int(run.loop.visits.sum()) == sum(lengths)
    assert set(lengths) <= set(range(1, 7))


def test_solved_at_and_first_success_are_what_the_records_say():
    run = sv.train("su-plus", "Tree-8", seed=1)
    tests = [record["test_return"] == 1.0 for record in run.metrics]
    assert tests[-10:] == [True] * 10
    assert run.solved_at == run.metrics[-10]["episode"]
    assert len(tests) == 10 or not tests[-11]
    returns = [x for record in run.metrics for x in record["returns"]]
    assert run.first_success == returns.index(1.0) + 1
    assert run.result["episodes"] == run.solved_at + 90


def test_training_goes_on_after_the_solution_when_told_to():
    run = sv.train("su-plus", "Tree-3", episodes=150, stop_when_solved=False)
    assert run.result["episodes"] == 150
    assert run.solved_at is not None


def test_uniform_exploration_succeeds_with_probability_2_to_the_minus_l():
    run = sv.train("uniform", "Tree-3", episodes=4000, stop_when_solved=False)
    returns = np.concatenate([record["returns"] for record in run.metrics])
    assert abs(returns.mean() - 1 / 8) < 0.025
    assert run.solved_at is None


def test_the_transitions_of_a_rollout_are_those_of_the_environment():
    env, params = sv.envs.make("Chain-5", 2)
    agent = sv.Uniform()
    state = agent.init(env.spec, jax.random.key(0))
    record = episodes.rollout(agent, env, params, state, None, jax.random.key(3))
    assert int(record.length) == 5
    t = record.transitions
    np.testing.assert_array_equal(t.obs[1:], t.next_obs[:-1])
    assert int(t.obs[0]) == 0
    assert int(t.next_obs[-1]) == 25
    assert t.terminated.tolist() == [False] * 4 + [True]
    for i in range(5):
        _, _, reward, _, _ = env.step_env(jax.random.key(0), t.obs[i], t.action[i], params)
        assert float(reward) == float(t.reward[i])
    assert float(record.total) == pytest.approx(float(jnp.sum(t.reward)))


def test_an_inactive_rollout_does_nothing():
    env, params = sv.envs.make("Chain-5")
    agent = sv.Uniform()
    state = agent.init(env.spec, jax.random.key(0))
    record = episodes.rollout(agent, env, params, state, None, jax.random.key(0), False)
    assert int(record.length) == 0


def test_one_program_serves_every_seed():
    program = episodes.compile_chunk
    before = program.cache_info().misses
    for seed in range(3):
        sv.train(FAST, "Tree-5", seed=seed, episodes=10)
    assert program.cache_info().misses - before == 1


def test_the_replay_holds_an_episode_even_if_asked_for_less():
    agent = dataclasses.replace(FAST, replay_capacity=2)
    run = sv.train(agent, "Chain-6", episodes=10)
    assert isinstance(run, Run)
    assert run.loop.replay.capacity == 6
