"""Counts of how often each observation and action was met, whatever observations are.

Numbered states have a cell of their own for each action. All other observations are hashed, so that
a look-up takes the same time for any number of them. Each has a cell in two tables, and the
smaller count is taken (a count-min sketch, Cormode and Muthukrishnan 2005): one whose cells are
both taken by others looks visited, and whatever lies behind it may not be found. That happens to
1% of new pairs after 100,000 others, and to 40% after a million.
"""

import dataclasses
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from surveyor.types import PRNG, EnvSpec, Mask, Obs, Transition

BITS, TABLES = 20, 2
"""Two tables of 2²⁰ cells for observations that are no numbers of states."""
SPREAD, OTHER = 0x9E3779B1, 0x7FEB352D
"""Odd numbers that tell actions, views, samples and tables apart in a hash."""
ALONE = 16
"""Most views of parts of a vector. A longer one has several numbers in each."""
COARSER = 4
"""Length of the cells of whole vectors, in those of a number alone."""
Codes = UInt32[Array, "*b views"]


class Visits(eqx.Module):
    """Visits of each observation and action, in one or several views of an observation.

    A numbered state or an image is one view. A vector of real numbers has one for each number
    alone, and one for all together with longer cells: in many dimensions nearly every fine cell of
    whole vectors would be a new one for ever.
    """

    count: Float[Array, "tables cells"]
    salt: UInt32[Array, ""]
    """Seed of the numbers that belong to cells."""
    multipliers: UInt32[Array, "views numbers"] | None
    """One for each number that a view has, 0 for others; None for numbered states."""
    bins: Float[Array, "views 1"]
    """Cells that a real number is divided into over a length of 1, for each view."""
    actions: int = eqx.field(static=True)
    spec: EnvSpec = eqx.field(static=True)

    @classmethod
    def create(cls, spec: EnvSpec, key: PRNG, bins: int) -> "Visits":
        """Return counts of zero; a real number alone has cells of 1/bins."""
        salt_key, key = jax.random.split(key)
        salt, fine = jax.random.bits(salt_key, (), jnp.uint32), jnp.full((1, 1), float(bins))
        if spec.tabular:
            count = jnp.zeros((1, spec.num_states * spec.num_actions))
            return cls(count, salt, None, fine, spec.num_actions, spec)
        numbers = math.prod(spec.shape)
        multipliers = jax.random.bits(key, (1, numbers), jnp.uint32) | jnp.uint32(1)
        if not spec.picture and len(spec.frame) == 1 and spec.dtype.startswith("float"):
            alone = min(numbers, ALONE)
            part = jnp.arange(numbers) % alone == jnp.arange(alone)[:, None]
            multipliers = jnp.concatenate([jnp.where(part, multipliers, 0), multipliers])
            whole = jnp.full((1, 1), float(max(1, bins // COARSER)))
            fine = jnp.concatenate([jnp.tile(fine, (alone, 1)), whole])
        count = jnp.zeros((TABLES, 2**BITS + spec.num_actions - 1))
        return cls(count, salt, multipliers, fine, spec.num_actions, spec)

    def codes(self, obs: Obs) -> Codes:
        """Return a number for each view of these observations, which says where its cells are."""
        if self.multipliers is None:
            return obs[..., None].astype(jnp.uint32)
        lead = obs.shape[: obs.ndim - len(self.spec.shape)]
        numbers = obs.reshape(*lead, 1, -1)
        if jnp.issubdtype(numbers.dtype, jnp.floating):
            numbers = jnp.round(numbers * self.bins)
        whole = numbers.astype(jnp.int32).astype(jnp.uint32)
        code = mixed(jnp.sum(whole * self.multipliers, axis=-1, dtype=jnp.uint32))
        return code + jnp.arange(len(self.multipliers), dtype=jnp.uint32) * jnp.uint32(OTHER)

    def at(self, codes: Codes) -> Float[Array, "*b views actions"]:
        """Return the visits of every action."""
        each = jnp.arange(self.actions)
        places = [first[..., None] + each for first in self._first(codes)]
        found = [self.count[table, where] for table, where in enumerate(places)]
        return functools.reduce(jnp.minimum, found)

    def of(self, codes: Codes, action: Int[Array, "*b"]) -> Float[Array, "*b views"]:
        """Return the visits of one action each."""
        return jnp.take_along_axis(self.at(codes), action[..., None, None], axis=-1)[..., 0]

    def uniforms(
        self, codes: UInt32[Array, "*n"], samples: int
    ) -> Float[Array, "*n actions samples"]:
        """Return a number in [0, 1) for each action and sample, always the same one."""
        each = jnp.arange(1, self.actions + 1, dtype=jnp.uint32) * jnp.uint32(SPREAD)
        which = jnp.arange(1, samples + 1, dtype=jnp.uint32) * jnp.uint32(OTHER)
        cells = mixed(mixed(codes[..., None] ^ each) ^ self.salt)
        return (mixed(cells[..., None] ^ which) >> 8).astype(jnp.float32) / 2**24

    def add(self, transitions: Transition, mask: Mask) -> tuple["Visits", Mask]:
        """Count the transitions in `mask`; return too which the last view had not met before.

        The counts before are told from those after: read before the tables change, they would make
        XLA copy the tables at every step.
        """
        codes, action, count = self.codes(transitions.obs), transitions.action, self.count
        for table, first in enumerate(self._first(codes)):
            count = count.at[table, first + action[:, None]].add(mask[:, None])
        visits, seen = dataclasses.replace(self, count=count), codes[:, -1]
        same = (seen[:, None] == seen) & (action[:, None] == action)
        together = jnp.sum(same & mask, axis=1)
        return visits, mask & (visits.of(codes, action)[:, -1] <= together)

    def _first(self, codes: Codes) -> list[Int[Array, "*b views"]]:
        """Return the cell of the first action in each table; those of the others follow it."""
        if self.multipliers is None:
            return [codes.astype(jnp.int32) * self.actions]
        salts = (jnp.uint32(table * OTHER % 2**32) for table in range(TABLES))
        return [(mixed(codes ^ salt) >> (32 - BITS)).astype(jnp.int32) for salt in salts]


def mixed(bits: UInt32[Array, "*n"]) -> UInt32[Array, "*n"]:
    """Return a permutation of 32 bits in which each depends on all (MurmurHash3's last step)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
