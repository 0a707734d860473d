"""A ring of past transitions inside the compiled loop, and the best episode beside it."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from surveyor.types import Batch, Transition


class Best(eqx.Module):
    """The first of the episodes with the highest return so far."""

    total: Float[Array, ""]
    """Its return."""
    length: Int[Array, ""]
    number: Int[Array, ""]
    """Which transition since the beginning was its first."""


class Replay(eqx.Module):
    """The last `capacity` transitions, oldest overwritten first, and the best episode for ever.

    Write first and sample after: XLA then keeps the ring in place. A `lax.cond` around it, or a
    read between two writes, would copy all of it at every step. A transition is one row of bits,
    and the best episode is kept behind the ring in the same array, so that a batch is one gather.
    """

    storage: Int[Array, "rows columns"]
    written: Int[Array, ""]
    """Transitions written since the beginning."""
    newest: Int[Array, ""]
    """How many of them came with the last `add`."""
    best: Best
    longest: int = eqx.field(static=True)
    """How many transitions an episode has at the most."""

    @classmethod
    def create(cls, capacity: int, longest: int) -> "Replay":
        """An empty ring, for states that are numbers; it holds one episode at least."""
        rows = max(capacity, longest) + longest
        storage = jnp.zeros((rows, len(dataclasses.fields(Transition))), jnp.int32)
        zeros = [jnp.zeros((), jnp.int32) for _ in range(4)]
        best = Best(jnp.full((), -jnp.inf), zeros[0], zeros[1])
        return cls(storage, zeros[2], zeros[3], best, longest)

    @property
    def capacity(self) -> int:
        """How many transitions the ring holds at most."""
        return len(self.storage) - self.longest

    def add(self, episode: Transition, count: Int[Array, ""]) -> "Replay":
        """Append the first `count` transitions, which are one episode."""
        step = jnp.arange(episode.action.shape[0])
        valid, nowhere = step < count, self.capacity + self.longest
        total = jnp.sum(jnp.where(valid, episode.reward, 0.0))
        better = total > self.best.total
        ring = jnp.where(valid, (self.written + step) % self.capacity, nowhere)
        behind = jnp.where(valid & better, self.capacity + step, nowhere)
        where = jnp.concatenate([ring, behind])
        new = _to_rows(episode)
        storage = self.storage.at[where].set(jnp.concatenate([new, new]), mode="drop")
        best = jax.tree.map(
            lambda new, old: jnp.where(better, new, old),
            Best(total, count, self.written),
            self.best,
        )
        return Replay(storage, self.written + count, count, best, self.longest)

    def sample(self, key: Key[Array, ""], size: int, recent: int = 0, best: int = 0) -> Batch:
        """`size` transitions with replacement: `recent` of them from the newest episode, `best`
        from the best one, and all others uniformly from the ring."""
        u, place = jax.random.uniform(key, (size,)), jnp.arange(size)
        stored = jnp.minimum(self.written, self.capacity)
        number = self.written - 1 - (u * stored).astype(jnp.int32)
        newest = self.written - 1 - (u * self.newest).astype(jnp.int32)
        number = jnp.where(place < recent, newest, number)
        index = number % self.capacity
        if best:
            step = (u * self.best.length).astype(jnp.int32)
            chosen = (recent <= place) & (place < recent + best)
            number = jnp.where(chosen, self.best.number + step, number)
            index = jnp.where(chosen, self.capacity + step, index)
        obs, action, reward, next_obs, terminated = self.storage[index].T
        reward = jax.lax.bitcast_convert_type(reward, jnp.float32)
        return Batch(obs, action, reward, next_obs, terminated > 0, number)


def _to_rows(steps: Transition) -> Int[Array, "n columns"]:
    bits = jax.lax.bitcast_convert_type(steps.reward.astype(jnp.float32), jnp.int32)
    columns = (steps.obs, steps.action, bits, steps.next_obs, steps.terminated)
    return jnp.stack([column.astype(jnp.int32) for column in columns], axis=1)
