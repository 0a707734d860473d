"""The ring of transitions."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.replay import Replay
from surveyor.types import Transition


def numbered(first, count):
    n = jnp.arange(first, first + count, dtype=jnp.int32)
    return Transition(n, n, n.astype(jnp.float32), n + 1, n % 2 == 0)


def example():
    return jax.tree.map(lambda x: x[0], numbered(0, 1))


def test_only_the_first_count_are_kept_and_the_oldest_are_overwritten():
    replay = Replay.create(example(), 5)
    replay = replay.add(numbered(0, 4), jnp.int32(3)).add(numbered(10, 4), jnp.int32(4))
    assert sorted(replay.storage.obs.tolist()) == [2, 10, 11, 12, 13]
    assert int(replay.written) == 7


def test_samples_are_uniform_over_what_is_stored_and_whole():
    replay = Replay.create(example(), 100).add(numbered(0, 10), jnp.int32(10))
    batch = replay.sample(jax.random.key(0), 20_000)
    counts = np.bincount(batch.obs, minlength=10)
    assert counts.size == 10
    assert abs(counts / 2000 - 1).max() < 0.1
    np.testing.assert_array_equal(batch.next_obs, batch.obs + 1)
    np.testing.assert_array_equal(batch.reward, batch.obs.astype(jnp.float32))


def test_recent_transitions_come_from_the_last_addition_even_across_the_seam():
    replay = Replay.create(example(), 8).add(numbered(0, 6), jnp.int32(6))
    replay = replay.add(numbered(50, 5), jnp.int32(4))
    batch = replay.sample(jax.random.key(1), 400, recent=100)
    assert set(batch.obs[:100].tolist()) == {50, 51, 52, 53}
    assert set(batch.obs[100:].tolist()) == {2, 3, 4, 5, 50, 51, 52, 53}
