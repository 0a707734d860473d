"""The replay of runs by steps, as JAX's arrays and as NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.replay.steps import StepReplay
from surveyor.types import EnvSpec, Schedule, Transition

VECTOR = EnvSpec(0, 3, 0, (2,), "float32")
FRAMES = EnvSpec(0, 3, 0, (4, 2, 2), "uint8", stack=4)
MILLION = Schedule(capacity=1_000_000, replay="prioritised")


def played(
    spec, host, steps, ends=(), cuts=(), skips=(), envs=2, capacity=20, n_step=1,
    strategy="uniform",
):  # fmt: skip
    """Return a replay after `steps` steps; step t of environment e saw 10 t + e and earned t."""
    xp, options = np if host else jnp, {"n_step": n_step, "discount": 0.5, "replay": strategy}
    schedule = Schedule(capacity=capacity * envs, envs=envs, **options)
    replay = StepReplay.create(spec, schedule, host=host)
    for t in range(steps):
        value = 10 * t + np.arange(envs)
        over = np.full(envs, t in ends)
        cut = np.full(envs, t in cuts)
        skipped = np.full(envs, t in skips)
        if spec.stack:
            obs = np.broadcast_to(value[:, None, None, None], (envs, *spec.shape)).astype(np.uint8)
        else:
            obs = np.stack([value, -value], axis=1).astype(np.float32)
        after = obs + 1
        reward = np.full(envs, float(t), np.float32)
        step = Transition(*map(xp.asarray, (obs, np.full(envs, t % 3), reward, after, over)))
        replay = replay.add(step, xp.asarray(over | cut | skipped), xp.asarray(skipped))
    return replay


@pytest.fixture(params=[False, True], ids=["jax", "numpy"])
def host(request):
    return request.param


def draw(replay, n=4000):
    u = np.random.default_rng(0).random(n, np.float32)
    return replay.sample(replay.xp.asarray(u))


def test_every_transition_is_drawn_equally_often_and_belongs_together(host):
    replay = played(VECTOR, host, 12)
    batch = draw(replay, n=24_000)
    counts = np.bincount(np.asarray(batch.number), minlength=24)
    assert np.all(np.abs(counts - 1000) < 150)
    time = np.asarray(batch.number) // 2
    np.testing.assert_array_equal(batch.reward, time)
    np.testing.assert_array_equal(batch.obs[:, 0], 10 * time + np.asarray(batch.number) % 2)
    np.testing.assert_array_equal(batch.next_obs, batch.obs + 1)
    np.testing.assert_array_equal(batch.action, time % 3)
    assert batch.trail is None
    np.testing.assert_allclose(batch.discount, 0.5)


def test_the_oldest_are_overwritten(host):
    replay = played(VECTOR, host, 50)
    time = np.asarray(draw(replay).number) // 2
    assert set(time) == set(range(31, 50))


def test_termination_stops_a_return_and_truncation_looks_at_what_followed(host):
    replay = played(VECTOR, host, 15, ends=(5,), cuts=(9,), n_step=3)
    batch = draw(replay)
    time = np.asarray(batch.number) // 2
    for t, length, terminated in ((0, 3, False), (4, 2, True), (5, 1, True), (8, 2, False)):
        rows = time == t
        assert rows.any()
        last = t + length - 1
        np.testing.assert_allclose(
            np.asarray(batch.reward)[rows], sum(0.5**i * (t + i) for i in range(length))
        )
        assert np.all(np.asarray(batch.terminated)[rows] == terminated)
        np.testing.assert_allclose(np.asarray(batch.discount)[rows], 0.5**length)
        # What followed the last step, before any reset.
        np.testing.assert_array_equal(np.asarray(batch.next_obs)[rows, 0] // 10, last)
        np.testing.assert_array_equal(np.asarray(batch.next_obs)[rows, 0] % 10 <= 2, True)
    assert set(time) == set(range(13))  # the last two returns are not complete yet


def test_the_trail_has_the_steps_between(host):
    replay = played(VECTOR, host, 15, ends=(5,), n_step=3)
    batch = draw(replay)
    time = np.asarray(batch.number) // 2
    rows = time == 4
    np.testing.assert_allclose(np.asarray(batch.trail.discount)[rows], [[0.5, 0.0]] * rows.sum())
    rows = time == 1
    np.testing.assert_allclose(np.asarray(batch.trail.discount)[rows], [[0.5, 0.25]] * rows.sum())
    np.testing.assert_array_equal(
        np.asarray(batch.trail.obs)[rows][:, :, 0] // 10, [[2, 3]] * rows.sum()
    )
    np.testing.assert_array_equal(np.asarray(batch.trail.action)[rows], [[2, 0]] * rows.sum())


def test_a_step_that_only_began_an_episode_is_never_drawn(host):
    for n_step in (1, 3):
        batch = draw(played(VECTOR, host, 15, ends=(5,), skips=(6,), n_step=n_step))
        time = np.asarray(batch.number) // 2
        assert 6 not in set(time)
        assert 5 in set(time)
    assert not np.any(np.asarray(batch.reward)[time == 4] == 4 + 0.5 * 5 + 0.25 * 6)


def test_stacks_are_put_together_from_single_frames(host):
    replay = played(FRAMES, host, 12, ends=(5,))
    batch = draw(replay)
    time, env = np.asarray(batch.number) // 2, np.asarray(batch.number) % 2
    obs, after = np.asarray(batch.obs)[..., 0, 0], np.asarray(batch.next_obs)[..., 0, 0]
    for i in range(0, 200):
        t, e = time[i], env[i]
        start = 0 if t <= 5 else 6
        frames = [10 * s + e if s >= start else 0 for s in range(t - 3, t + 1)]
        np.testing.assert_array_equal(obs[i], frames)
        if t != 5:  # nothing follows the end, whatever stands there
            follow = [10 * s + e if s >= start else 0 for s in range(t - 2, t + 2)]
            np.testing.assert_array_equal(after[i], follow)
    assert set(np.asarray(batch.terminated)[time == 5]) == {True}
    assert max(time) == 10  # what followed the newest frame has not been seen


def test_an_episode_of_frames_that_was_cut_off_ends_one_step_earlier(host):
    """What followed the cut is not among the frames, and is never made up from the next episode."""
    for n_step in (1, 3):
        batch = draw(played(FRAMES, host, 12, cuts=(5,), n_step=n_step))
        time = np.asarray(batch.number) // 2
        assert 5 not in set(time)
        rows = time == 4
        assert not np.any(np.asarray(batch.terminated)[rows])
        np.testing.assert_allclose(np.asarray(batch.discount)[rows], 0.5)
        assert np.all(np.asarray(batch.next_obs)[rows, -1, 0, 0] // 10 == 5)
        np.testing.assert_allclose(np.asarray(batch.reward)[rows], 4.0)


def test_prioritised_draws_follow_the_errors_and_weights_take_the_bias_back(host):
    replay = played(VECTOR, host, 10, strategy="prioritised(1)")
    first = draw(replay)
    np.testing.assert_allclose(first.weight, 1.0)  # all alike before anything is known
    number = np.arange(20)
    errors = np.where(number == 7, 10.0, 1.0).astype(np.float32)
    replay = replay.update_priorities(replay.xp.asarray(number), replay.xp.asarray(errors))
    batch = draw(replay, n=20_000)
    share = np.mean(np.asarray(batch.number) == 7)
    assert share == pytest.approx(10 / 29, abs=0.02)
    rare = np.asarray(batch.weight)[np.asarray(batch.number) != 7]
    often = np.asarray(batch.weight)[np.asarray(batch.number) == 7]
    np.testing.assert_allclose(often / rare[0], 10**-0.5, rtol=0.01)


def test_a_million_atari_transitions_fit_into_the_promised_memory():
    spec = EnvSpec(0, 6, 0, (4, 84, 84), "uint8", stack=4)
    # Pages that nothing has touched cost nothing.
    replay = StepReplay.create(spec, MILLION, host=True)
    arrays = [replay.obs, replay.action, replay.reward, replay.flags, replay.priority]
    assert replay.next_obs is None
    assert sum(array.nbytes for array in arrays) <= 7.5e9


def test_by_priority_no_step_is_drawn_that_is_none(host):
    replay = played(VECTOR, host, 12, ends=(4,), skips=(5,), strategy="prioritised(1)")
    for _ in range(3):  # what was drawn counts little from then on; what was skipped never counts
        batch = draw(replay)
        replay = replay.update_priorities(batch.number, batch.reward * 0 + 0.05)
    batch = draw(replay, n=22_000)
    counts = np.bincount(np.asarray(batch.number), minlength=24)
    assert np.all(counts[10:12] == 0)
    assert np.all(np.abs(counts[np.r_[0:10, 12:24]] - 1000) < 150)
    cut = played(FRAMES, host, 12, cuts=(6,), strategy="prioritised(1)")
    times = np.asarray(draw(cut).number) // 2
    assert 6 not in times
    assert np.mean(times == 5) < 0.2


def test_a_million_priorities_are_added_up_exactly_enough():
    replay = StepReplay.create(VECTOR, MILLION, host=True)
    replay.written[...] = 1_000_000
    replay.priority[:500_000], replay.priority[500_000:] = 1.0, 0.02
    late = np.asarray(draw(replay, n=100_000).number) >= 500_000
    assert np.mean(late) == pytest.approx(0.02 / 1.02, rel=0.1)


def test_a_replay_that_is_just_full_has_no_frames_of_the_newest_before_the_oldest(host):
    replay = played(FRAMES, host, 20)
    batch = draw(replay)
    frames = np.asarray(batch.obs)[:, :, 0, 0].astype(int)
    assert np.all(np.diff(frames, axis=1) >= 0)


def test_uniform_replays_keep_no_priorities_and_ignore_errors(host):
    replay = played(VECTOR, host, 10)
    assert replay.priority is None
    assert replay.update_priorities(np.arange(2), np.ones(2, np.float32)) is replay


def test_observations_are_drawn_from_all_that_have_been_seen(host):
    replay = played(VECTOR, host, 12, n_step=3)
    u = replay.xp.asarray((np.arange(240, dtype=np.float32) + 0.5) / 240)
    seen = {int(x) for x in np.asarray(replay.observations(u))[:, 0]}
    assert seen == {10 * t + e for t in range(10) for e in range(2)}


@pytest.mark.parametrize("strategy", ["uniform", "prioritised(0.6)"])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("spec", [VECTOR, FRAMES], ids=["vector", "frames"])
def test_many_batches_are_those_drawn_one_by_one(host, spec, n_step, strategy):
    replay = played(spec, host, 15, ends=(5,), cuts=(9,), n_step=n_step, strategy=strategy)
    us = np.random.default_rng(3).random((4, 6)).astype(np.float32)
    many = replay.sample_many([replay.xp.asarray(u) for u in us])
    for i, u in enumerate(us):
        one = replay.sample(replay.xp.asarray(u))
        compare = lambda a, b, i=i: np.testing.assert_array_equal(a[i], b)  # noqa: E731
        jax.tree.map(compare, many, one)
