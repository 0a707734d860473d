"""The replay of runs by episodes: a ring of transitions, and the best episode beside it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.replay.episodes import EpisodeReplay
from surveyor.replay.strategies import RecentAndBest, Uniform
from surveyor.types import Transition


def numbered(first, count):
    n = jnp.arange(first, first + count, dtype=jnp.int32)
    return Transition(n, n, n.astype(jnp.float32), n + 1, n % 2 == 0)


def add(replay, first, room, count=None):
    """Add an episode of `count` transitions, numbered from `first`, in arrays for `room`."""
    return replay.add(numbered(first, room), jnp.arange(room) < (room if count is None else count))


def uniforms(n, seed=0):
    return jax.random.uniform(jax.random.key(seed), (n,))


def test_only_what_the_mask_holds_is_kept_and_the_oldest_is_overwritten():
    replay = EpisodeReplay.create(5, 4, Uniform())
    replay = add(add(replay, 0, 4, 3), 10, 4)
    assert sorted(replay.storage[:5, 0].tolist()) == [2, 10, 11, 12, 13]
    assert int(replay.written) == 7


def test_it_holds_an_episode_even_if_asked_for_less():
    replay = add(EpisodeReplay.create(2, 6, Uniform()), 0, 6)
    assert replay.capacity == 6
    assert set(replay.sample(uniforms(200)).obs.tolist()) == set(range(6))


def test_samples_are_uniform_over_what_is_stored_and_whole():
    replay = add(EpisodeReplay.create(100, 10, Uniform()), 0, 10)
    batch = replay.sample(uniforms(20_000))
    counts = np.bincount(batch.obs, minlength=10)
    assert counts.size == 10
    assert abs(counts / 2000 - 1).max() < 0.1
    np.testing.assert_array_equal(batch.next_obs, batch.obs + 1)
    np.testing.assert_array_equal(batch.action, batch.obs)
    np.testing.assert_array_equal(batch.reward, batch.obs.astype(jnp.float32))
    np.testing.assert_array_equal(batch.terminated, batch.obs % 2 == 0)
    assert batch.weight is None


def test_rewards_come_back_to_the_bit():
    rewards = np.float32([-0.01 / 3, 1e-30, 1 - 0.01 / 7, -0.0])
    integers = jnp.arange(4, dtype=jnp.int32)
    episode = Transition(integers, integers, jnp.asarray(rewards), integers, integers > 2)
    replay = EpisodeReplay.create(8, 4, Uniform()).add(episode, jnp.ones(4, bool))
    batch = replay.sample(uniforms(50))
    np.testing.assert_array_equal(
        np.asarray(batch.reward).view(np.int32), rewards[np.asarray(batch.obs)].view(np.int32)
    )


def test_recent_transitions_come_from_the_last_addition_even_across_the_seam():
    replay = EpisodeReplay.create(8, 6, RecentAndBest(100, 0))
    batch = add(add(replay, 0, 6), 50, 5, 4).sample(uniforms(400))
    assert set(batch.obs[:100].tolist()) == {50, 51, 52, 53}
    assert set(batch.obs[100:].tolist()) == {2, 3, 4, 5, 50, 51, 52, 53}


@pytest.mark.parametrize("strategy", [Uniform(), RecentAndBest(50, 50)])
def test_a_batch_says_which_transitions_since_the_beginning_it_holds(strategy):
    replay = EpisodeReplay.create(8, 6, strategy)
    batch = add(add(replay, 0, 6), 6, 5, 4).sample(uniforms(200))
    np.testing.assert_array_equal(batch.number, batch.obs)


def test_the_best_episode_is_never_forgotten():
    replay = add(EpisodeReplay.create(8, 6, RecentAndBest(50, 100)), 3, 6)
    for _ in range(5):
        replay = add(replay, 0, 4)
    batch = replay.sample(uniforms(300))
    assert set(batch.obs[50:150].tolist()) == {3, 4, 5, 6, 7, 8}
    np.testing.assert_array_equal(batch.number[50:150], batch.obs[50:150] - 3)
    assert set(batch.obs[:50].tolist()) | set(batch.obs[150:].tolist()) == {0, 1, 2, 3}
    better = add(replay, 90, 2).sample(uniforms(300))
    assert set(better.obs[50:150].tolist()) == {90, 91}


def test_of_equally_good_episodes_the_first_stays_the_best():
    replay = EpisodeReplay.create(8, 2, RecentAndBest(0, 20))
    first = add(replay, 4, 2)  # rewards 4 and 5
    second = first.add(
        Transition(*[jnp.array([7, 7])] * 2, jnp.array([9.0, 0.0]), jnp.array([7, 7]),
                   jnp.zeros(2, bool)), jnp.ones(2, bool),
    )  # fmt: skip
    assert set(second.sample(uniforms(20)).obs.tolist()) == {4, 5}


def test_errors_change_nothing_as_no_strategy_has_priorities():
    replay = add(EpisodeReplay.create(8, 4, Uniform()), 0, 4)
    after = replay.update_priorities(jnp.arange(4), jnp.array([9.0, 0, 0, 0]))
    np.testing.assert_array_equal(after.sample(uniforms(9)).obs, replay.sample(uniforms(9)).obs)
