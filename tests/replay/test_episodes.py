"""The ring of transitions."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.replay.episodes import Replay
from surveyor.types import Transition


def numbered(first, count):
    n = jnp.arange(first, first + count, dtype=jnp.int32)
    return Transition(n, n, n.astype(jnp.float32), n + 1, n % 2 == 0)


def test_only_the_first_count_are_kept_and_the_oldest_are_overwritten():
    replay = Replay.create(5, 4)
    replay = replay.add(numbered(0, 4), jnp.int32(3)).add(numbered(10, 4), jnp.int32(4))
    assert sorted(replay.storage[:5, 0].tolist()) == [2, 10, 11, 12, 13]
    assert int(replay.written) == 7


def test_samples_are_uniform_over_what_is_stored_and_whole():
    replay = Replay.create(100, 10).add(numbered(0, 10), jnp.int32(10))
    batch = replay.sample(jax.random.key(0), 20_000)
    counts = np.bincount(batch.obs, minlength=10)
    assert counts.size == 10
    assert abs(counts / 2000 - 1).max() < 0.1
    np.testing.assert_array_equal(batch.next_obs, batch.obs + 1)
    np.testing.assert_array_equal(batch.reward, batch.obs.astype(jnp.float32))


def test_recent_transitions_come_from_the_last_addition_even_across_the_seam():
    replay = Replay.create(8, 6).add(numbered(0, 6), jnp.int32(6))
    replay = replay.add(numbered(50, 5), jnp.int32(4))
    batch = replay.sample(jax.random.key(1), 400, recent=100)
    assert set(batch.obs[:100].tolist()) == {50, 51, 52, 53}
    assert set(batch.obs[100:].tolist()) == {2, 3, 4, 5, 50, 51, 52, 53}


def test_a_batch_says_which_transitions_since_the_beginning_it_holds():
    replay = Replay.create(8, 6).add(numbered(0, 6), jnp.int32(6))
    replay = replay.add(numbered(6, 5), jnp.int32(4))
    batch = replay.sample(jax.random.key(1), 200, recent=50)
    np.testing.assert_array_equal(batch.number, batch.obs)


def test_the_best_episode_is_never_forgotten():
    replay = Replay.create(8, 6).add(numbered(3, 6), jnp.int32(6))
    for _ in range(5):
        replay = replay.add(numbered(0, 4), jnp.int32(4))
    batch = replay.sample(jax.random.key(2), 300, recent=50, best=100)
    assert set(batch.obs[50:150].tolist()) == {3, 4, 5, 6, 7, 8}
    np.testing.assert_array_equal(batch.number[50:150], batch.obs[50:150] - 3)
    assert set(batch.obs[:50].tolist()) | set(batch.obs[150:].tolist()) == {0, 1, 2, 3}
    better = replay.add(numbered(90, 2), jnp.int32(2))
    batch = better.sample(jax.random.key(3), 100, best=100)
    assert set(batch.obs.tolist()) == {90, 91}
