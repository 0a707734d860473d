"""A ring of past transitions that lives inside the compiled loop."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from surveyor.types import Batch, Transition


class Replay(eqx.Module):
    """The last `capacity` transitions, oldest overwritten first.

    Write first and sample after: XLA then keeps the ring in place. A `lax.cond` around it, or a
    read between two writes, would copy all of it at every step.
    """

    storage: Transition
    written: Int[Array, ""]
    """Transitions written since the beginning."""
    newest: Int[Array, ""]
    """How many of them came with the last `add`."""

    @classmethod
    def create(cls, example: Transition, capacity: int) -> "Replay":
        """An empty ring for transitions of this shape and type."""
        storage = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), example)
        return cls(storage, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))

    @property
    def capacity(self) -> int:
        """How many transitions it holds at most."""
        return self.storage.action.shape[0]

    def add(self, batch: Transition, count: Int[Array, ""]) -> "Replay":
        """Append the first `count` transitions of a batch no longer than the ring."""
        length = batch.action.shape[0]
        position = (self.written + jnp.arange(length)) % self.capacity
        position = jnp.where(jnp.arange(length) < count, position, self.capacity)
        storage = jax.tree.map(
            lambda ring, new: ring.at[position].set(new, mode="drop"), self.storage, batch
        )
        return Replay(storage, self.written + count, count)

    def sample(self, key: Key[Array, ""], size: int, recent: int = 0) -> Batch:
        """`size` transitions, uniformly and with replacement, `recent` of them from the newest."""
        u = jax.random.uniform(key, (size,))
        stored = jnp.minimum(self.written, self.capacity)
        newest = (self.written - 1 - (u * self.newest).astype(jnp.int32)) % self.capacity
        index = jnp.where(jnp.arange(size) < recent, newest, (u * stored).astype(jnp.int32))
        drawn = jax.tree.map(lambda ring: ring[index], self.storage)
        number = self.written - 1 - (self.written - 1 - index) % self.capacity
        return Batch(
            drawn.obs, drawn.action, drawn.reward, drawn.next_obs, drawn.terminated, number
        )
