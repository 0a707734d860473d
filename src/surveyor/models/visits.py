"""Counts of how often each observation and action was met, whatever observations are.

Numbered states have a cell of their own for each action. All other observations are hashed, so that
a look-up takes the same time for any number of them. Each has a cell in several tables, and the
smallest count is taken (a count-min sketch, Cormode and Muthukrishnan 2005): one that shares a cell
in every table would never be new, and whatever lies behind it never found.
"""

import dataclasses
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from surveyor.types import PRNG, EnvSpec, Mask, Obs, Transition

BITS, TABLES = 18, 4
"""Tables of 2¹⁸ cells for observations that are no numbers of states."""
SPREAD, OTHER = 0x9E3779B1, 0x7FEB352D
"""Odd numbers that tell actions and samples apart in a hash."""
SIZES = 3
"""Sizes of the cells of a vector, each twice as long as the one before."""
Cells = UInt32[Array, "*b sizes actions"]


class Visits(eqx.Module):
    """Visits of each observation and action, for cells of one or several sizes."""

    count: Float[Array, "sizes tables cells"]
    salt: UInt32[Array, ""]
    """Seed of the numbers that belong to cells."""
    multipliers: UInt32[Array, " numbers"] | None
    """One for each number of an observation; None for numbered states."""
    actions: int = eqx.field(static=True)
    spec: EnvSpec = eqx.field(static=True)
    bins: tuple[int, ...] = eqx.field(static=True)
    """Cells that a real number is divided into over a length of 1, for each size."""

    @classmethod
    def create(cls, spec: EnvSpec, key: PRNG, bins: int) -> "Visits":
        """Return counts of zero; vectors have cells of `SIZES` sizes, the finest of 1/bins."""
        salt_key, key = jax.random.split(key)
        salt = jax.random.bits(salt_key, (), jnp.uint32)
        if spec.tabular:
            count = jnp.zeros((1, 1, spec.num_states * spec.num_actions))
            return cls(count, salt, None, spec.num_actions, spec, (bins,))
        multipliers = jax.random.bits(key, (math.prod(spec.shape),), jnp.uint32) | jnp.uint32(1)
        vector = not spec.picture and len(spec.frame) == 1 and spec.dtype.startswith("float")
        sizes = tuple(max(1, bins >> i) for i in range(SIZES)) if vector else (bins,)
        count = jnp.zeros((len(sizes), TABLES, 2**BITS))
        return cls(count, salt, multipliers, spec.num_actions, spec, sizes)

    def cells(self, obs: Obs) -> Cells:
        """Return a number for each size and action at these observations, which says its cells."""
        each = jnp.arange(self.actions, dtype=jnp.uint32)
        if self.multipliers is None:
            return (obs[..., None].astype(jnp.uint32) * jnp.uint32(self.actions) + each)[
                ..., None, :
            ]
        lead = obs.shape[: obs.ndim - len(self.spec.shape)]
        numbers = obs.reshape(*lead, 1, -1)
        if jnp.issubdtype(numbers.dtype, jnp.floating):
            numbers = jnp.round(numbers * jnp.array(self.bins, jnp.float32)[:, None])
        whole = numbers.astype(jnp.int32).astype(jnp.uint32)
        code = mixed(jnp.sum(whole * self.multipliers, axis=-1, dtype=jnp.uint32))
        code = jnp.broadcast_to(code, (*lead, len(self.bins)))
        return mixed(code[..., None] ^ ((each + 1) * jnp.uint32(SPREAD)))

    def at(self, cells: Cells) -> Float[Array, "*b sizes actions"]:
        """Return the visits of cells."""
        size = jnp.arange(len(self.bins))[:, None]
        found = [self.count[size, table, where] for table, where in enumerate(self._where(cells))]
        return functools.reduce(jnp.minimum, found)

    def uniforms(self, cells: Cells, samples: int) -> Float[Array, "*b sizes samples actions"]:
        """Return a number in [0, 1) for each sample and cell, always the same one."""
        which = jnp.arange(1, samples + 1, dtype=jnp.uint32) * jnp.uint32(OTHER)
        bits = mixed(mixed(cells ^ self.salt)[..., None, :] ^ which[:, None])
        return (bits >> 8).astype(jnp.float32) / 2**24

    def add(self, transitions: Transition, mask: Mask) -> tuple["Visits", Mask]:
        """Count the transitions in `mask`; return too which were the first in their largest cell.

        The counts before are told from those after: read before the tables change, they would make
        XLA copy the tables at every step.
        """
        cells = self.cells(transitions.obs)
        taken = jnp.take_along_axis(cells, transitions.action[:, None, None], axis=-1)
        count, size = self.count, jnp.arange(len(self.bins))
        for table, where in enumerate(self._where(taken)):
            count = count.at[size, table, where[..., 0]].add(mask[:, None])
        visits = dataclasses.replace(self, count=count)
        largest = taken[:, -1, 0]
        together = jnp.sum((largest[:, None] == largest) & mask, axis=1)
        return visits, mask & (visits.at(taken)[:, -1, 0] <= together)

    def _where(self, cells: UInt32[Array, "*b"]) -> list[UInt32[Array, "*b"]]:
        """Return the cell in each table."""
        if self.multipliers is None:
            return [cells]
        salts = (jnp.uint32(table * OTHER % 2**32) for table in range(TABLES))
        return [mixed(cells ^ salt) >> (32 - BITS) for salt in salts]


def mixed(bits: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """Return a permutation of 32 bits in which each depends on all (MurmurHash3's last step)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
