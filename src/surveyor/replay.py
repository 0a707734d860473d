"""A ring of past transitions inside the compiled loop, and the best episode beside it."""

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
    read between two writes, would copy all of it at every step. The best episode is kept behind
    the ring in the same arrays, so that a batch is one gather.
    """

    storage: Transition
    written: Int[Array, ""]
    """Transitions written since the beginning."""
    newest: Int[Array, ""]
    """How many of them came with the last `add`."""
    best: Best
    longest: int = eqx.field(static=True)
    """How many transitions an episode has at the most."""

    @classmethod
    def create(cls, example: Transition, capacity: int, longest: int) -> "Replay":
        """An empty ring for transitions of this shape and type; it holds one episode at least."""
        rows = max(capacity, longest) + longest
        storage = jax.tree.map(lambda x: jnp.zeros((rows, *x.shape), x.dtype), example)
        zeros = [jnp.zeros((), jnp.int32) for _ in range(4)]
        best = Best(jnp.full((), -jnp.inf), zeros[0], zeros[1])
        return cls(storage, zeros[2], zeros[3], best, longest)

    @property
    def capacity(self) -> int:
        """How many transitions the ring holds at most."""
        return self.storage.action.shape[0] - self.longest

    def add(self, episode: Transition, count: Int[Array, ""]) -> "Replay":
        """Append the first `count` transitions, which are one episode."""
        step = jnp.arange(episode.action.shape[0])
        valid, nowhere = step < count, self.capacity + self.longest
        total = jnp.sum(jnp.where(valid, episode.reward, 0.0))
        better = total > self.best.total
        ring = jnp.where(valid, (self.written + step) % self.capacity, nowhere)
        behind = jnp.where(valid & better, self.capacity + step, nowhere)
        where = jnp.concatenate([ring, behind])
        storage = jax.tree.map(
            lambda rows, new: rows.at[where].set(jnp.concatenate([new, new]), mode="drop"),
            self.storage,
            episode,
        )
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
        drawn = jax.tree.map(lambda rows: rows[index], self.storage)
        return Batch(
            drawn.obs, drawn.action, drawn.reward, drawn.next_obs, drawn.terminated, number
        )
