"""Deferred dense Adam, for tables of which a batch touches only a few rows.

Dense Adam moves every row at every step: a row outside the batch has gradient zero, but its
momentum carries it on. On a table of many states that is nearly all of the cost, and leaving those
rows still (as sparse optimisers do) changes the algorithm: on the chain it takes almost twice the
episodes. Here the missed steps are applied in closed form when a row is next read, so that a step
costs the same however long the table is.

For a row last updated at step t₀, k steps of gradient zero leave

    m ← β₁ᵏ m,    v ← β₂ᵏ v,    x ← x - α m/(√v + ε') · Σ_{j=1..k} ρʲ c(t₀+j),

with ρ = β₁/√β₂ and c(t) = √(1-β₂ᵗ)/(1-β₁ᵗ), Adam's bias correction. The sum is S(t₀) - ρᵏ S(t₀+k)
with S(t) = Σ_{j≥1} ρʲ c(t+j), which is tabulated. The only approximation is that
ε' = ε√(1-β₂^(t₀+1)) is held fixed over the missed steps: nothing unless gradients are as small as
ε itself.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Real

Ids = Int[Array, "*b"]
Steps = Int[Array, "*#step"]
Values = Float[Array, "*b width"]

B1, B2 = 0.9, 0.999  # Adam's β₁ and β₂
RHO = B1 / B2**0.5
CACHE_LINE = 16  # in floats
TABULATED = 1 << 14  # beyond this many steps c(t) is 1 to within float32


class Rows(eqx.Module):
    """Some rows of a table, with every missed step applied."""

    value: Values
    m: Values
    v: Values


class Table(eqx.Module):
    """A table of parameters, each row with its moments.

    A row is its values, their first and second moments, and last the step at which it was written
    (exact up to 2^24 steps): one array, so that a step is one gather and one scatter, in place.
    Rows are padded to whole cache lines, to touch as few of them as possible.
    """

    packed: Float[Array, "n columns"]
    width: int = eqx.field(static=True)

    @classmethod
    def create(cls, value: Float[Array, "n width"]) -> "Table":
        """Return a table that starts at these values, with moments zero."""
        width = value.shape[1]
        columns = -(-(3 * width + 1) // CACHE_LINE) * CACHE_LINE
        return cls(jnp.pad(value, ((0, 0), (0, columns - width))), width)


@dataclasses.dataclass(frozen=True)
class RowAdam:
    """Dense Adam on a `Table`, at the cost of the rows in use."""

    learning_rate: float
    eps: float = 1e-8

    def fetch(self, table: Table, ids: Ids, step: Steps) -> Rows:
        """Return rows as dense Adam would have them after `step` steps in all."""
        row = table.packed[ids]
        value, m, v = jnp.split(row[..., : 3 * table.width], 3, axis=-1)
        start = row[..., -1]
        missed = step - start
        drift = _tail(start) - _power(RHO, missed) * _tail(step)
        eps = self.eps * jnp.sqrt(1 - _power(B2, start + 1))[..., None]
        value = value - self.learning_rate * drift[..., None] * m / (jnp.sqrt(v) + eps)
        return Rows(value, m * _power(B1, missed)[..., None], v * _power(B2, missed)[..., None])

    def update(self, table: Table, ids: Ids, rows: Rows, gradient: Values, step: Steps) -> Table:
        """Take step number `step + 1` on the fetched rows; gradients of equal ids add up.

        Where ids come in groups, two groups are equal or have no row in common.
        """
        b = len(ids)
        group = ids.reshape(b, -1)[:, 0]
        first = jnp.min(jnp.where(group[:, None] == group[None], jnp.arange(b), b), axis=1)
        gradient = jnp.zeros_like(gradient).at[first].add(gradient)
        m = B1 * rows.m + (1 - B1) * gradient
        v = B2 * rows.v + (1 - B2) * gradient**2
        t = jnp.broadcast_to(step + 1.0, ids.shape)[..., None]
        rate = self.learning_rate / (1 - _power(B1, t))
        scale = jax.lax.rsqrt(1 - _power(B2, t))
        value = rows.value - rate * m / (jnp.sqrt(v) * scale + self.eps)
        filling = jnp.zeros((*ids.shape, table.packed.shape[1] - 3 * table.width - 1))
        row = jnp.concatenate([value, m, v, filling, t], axis=-1)
        # Only the first of equal ids holds the whole gradient; the others are dropped.
        whole = (first == jnp.arange(b)).reshape(b, *[1] * (ids.ndim - 1))
        where = jnp.where(whole, ids, len(table.packed))
        return Table(table.packed.at[where].set(row, mode="drop"), table.width)


def _power(base: float, exponent: Real[Array, "*n"]) -> Float[Array, "*n"]:
    """Return base^exponent, several times faster than the general power."""
    return jnp.exp(np.float32(np.log(base)) * exponent)


def _tail(t: Real[Array, "*n"]) -> Float[Array, "*n"]:
    """Return S(t) = Σ_{j≥1} ρʲ c(t+j)."""
    return jnp.asarray(_tails())[jnp.minimum(t, TABULATED - 1).astype(jnp.int32)]


@functools.cache
def _tails() -> np.ndarray:
    """Tabulate S(t) for t = 0, 1, …, from the recursion S(t) = ρ (c(t+1) + S(t+1))."""
    steps = np.arange(1, TABULATED + 1, dtype=np.float64)
    correction = np.sqrt(1 - B2**steps) / (1 - B1**steps)
    tail = np.empty(TABULATED)
    tail[-1] = RHO / (1 - RHO)
    for i in range(TABULATED - 1, 0, -1):
        tail[i - 1] = RHO * (correction[i - 1] + tail[i])
    return tail.astype(np.float32)
