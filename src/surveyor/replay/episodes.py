"""The replay of runs by episodes: a ring of past transitions, and the best episode beside it."""

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.replay.ring import Ring
from surveyor.replay.strategies import Floats, Numbers, Strategy
from surveyor.types import Batch, Mask, Transition

COLUMNS = 5
"""Numbers of a transition: state, action, reward, next state, and whether it was the last."""


class Best(eqx.Module):
    """The first of the episodes with the highest return so far."""

    total: Float[Array, ""]
    length: Int[Array, ""]
    number: Int[Array, ""]
    """Number of its first transition."""


class EpisodeReplay(eqx.Module):
    """The last `capacity` transitions, oldest overwritten first, and the best episode for ever.

    Write first and sample after: XLA then keeps the ring in place. A `lax.cond` around it, or a
    read between two writes, would copy all of it at every step. A transition is one row of bits,
    and the best episode is kept behind the ring in the same array, so that a batch is one gather.
    """

    storage: Int[Array, "rows columns"]
    written: Int[Array, ""]
    """Transitions written so far."""
    newest: Int[Array, ""]
    """Transitions of the newest episode."""
    best: Best
    longest: int = eqx.field(static=True)
    """Largest number of transitions in an episode."""
    strategy: Strategy = eqx.field(static=True)

    @classmethod
    def create(cls, capacity: int, longest: int, strategy: Strategy) -> "EpisodeReplay":
        """Return an empty ring for states that are numbers; it holds one episode at least."""
        rows = max(capacity, longest) + longest
        storage = jnp.zeros((rows, COLUMNS), jnp.int32)
        zeros = [jnp.zeros((), jnp.int32) for _ in range(4)]
        best = Best(jnp.full((), -jnp.inf), zeros[0], zeros[1])
        return cls(storage, zeros[2], zeros[3], best, longest, strategy)

    @property
    def capacity(self) -> int:
        """Largest number of transitions in the ring."""
        return len(self.storage) - self.longest

    def add(self, episode: Transition, mask: Mask) -> "EpisodeReplay":
        """Append one episode: its leading transitions, where `mask` holds."""
        step, count = jnp.arange(len(mask)), jnp.sum(mask, dtype=jnp.int32)
        nowhere = len(self.storage)
        total = jnp.sum(jnp.where(mask, episode.reward, 0.0))
        better = total > self.best.total
        ring = jnp.where(mask, (self.written + step) % self.capacity, nowhere)
        behind = jnp.where(mask & better, self.capacity + step, nowhere)
        where = jnp.concatenate([ring, behind])
        bits = jax.lax.bitcast_convert_type(episode.reward.astype(jnp.float32), jnp.int32)
        columns = (episode.obs, episode.action, bits, episode.next_obs, episode.terminated)
        new = jnp.stack([column.astype(jnp.int32) for column in columns], axis=1)
        storage = self.storage.at[where].set(jnp.concatenate([new, new]), mode="drop")
        new_best = Best(total, count, self.written)
        best = jax.tree.map(partial(jnp.where, better), new_best, self.best)
        fixed = (self.longest, self.strategy)
        return EpisodeReplay(storage, self.written + count, count, best, *fixed)

    def sample(self, u: Floats) -> Batch:
        drawn = self.strategy.draw(self, u)
        row = drawn.number % self.capacity if drawn.row is None else drawn.row
        obs, action, reward, next_obs, terminated = self.storage[row].T
        reward = jax.lax.bitcast_convert_type(reward, jnp.float32)
        return Batch(obs, action, reward, next_obs, terminated > 0, drawn.number)

    def update_priorities(self, number: Numbers, errors: Floats) -> "EpisodeReplay":
        """Return the replay as it is: none of its strategies has priorities."""
        return self

    def split(self) -> tuple[Ring, "EpisodeReplay"]:
        """Return the ring, and the replay with nothing but the best episode in its storage."""
        ring = Ring({"storage": self.storage}, self.written, self.capacity)
        return ring, eqx.tree_at(lambda r: r.storage, self, self.storage[self.capacity :])

    def joined(self, ring: Ring) -> "EpisodeReplay":
        storage = jnp.asarray(ring.arrays["storage"]).at[ring.capacity :].set(self.storage)
        return dataclasses.replace(self, storage=storage)

    def uniform(self, u: Floats) -> Numbers:
        """Return numbers of transitions in the ring, all equally likely."""
        stored = jnp.minimum(self.written, self.capacity)
        return self.written - 1 - (u * stored).astype(jnp.int32)

    def newest_episode(self, u: Floats) -> Numbers:
        """Return numbers of transitions of the newest episode."""
        return self.written - 1 - (u * self.newest).astype(jnp.int32)

    def best_episode(self, u: Floats) -> tuple[Numbers, Numbers]:
        """Return numbers and rows of transitions of the best episode."""
        step = (u * self.best.length).astype(jnp.int32)
        return self.best.number + step, self.capacity + step
