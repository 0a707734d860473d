"""Q functions of numbered states that are nothing but a table."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.models.losses import Penalty, PerHead, penalty
from surveyor.models.q import QValues, Weight, Which, q_losses
from surveyor.types import Batch, EnvSpec, States, Update


class PlainTable(eqx.Module):
    """A number for every state, head and action, trained by plain gradient descent.

    Transitions of the same state and action share a step, so that how often one is in a batch does
    not change how far it goes.
    """

    values: Float[Array, "n columns"]
    """A row for each state: its actions under every head, one head after another."""
    heads: int = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    @classmethod
    def create(cls, spec: EnvSpec, start: Float[Array, " heads"], rate: float) -> "PlainTable":
        """Return a table whose heads start at these values."""
        row = jnp.repeat(start, spec.num_actions)
        return cls(jnp.tile(row, (spec.num_states, 1)), len(start), rate)

    def q(self, obs: States, heads: Which = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        rows = self.values[obs]
        q = rows.reshape(*rows.shape[:-1], self.heads, -1)
        return q if heads is None else q[..., heads, :]

    def target_q(self, obs: States, heads: Which = None) -> QValues:
        """Return Q(s, ·): tables have no target network."""
        return self.q(obs, heads)

    def fit(
        self, batch: Batch, targets: PerHead, kind: Penalty, *, mask: Weight = 1.0
    ) -> tuple["PlainTable", Update]:
        """Take one step of gradient descent on every head, of the rate times `mask`.

        It goes that share of the way to a target, or of 1 where smooth-L1 errors are larger.
        """
        q = self.q(batch.obs)
        _, update = q_losses(q, batch, targets, kind, 1.0)
        taken = jnp.take_along_axis(q, batch.action[:, None, None], axis=-1)[..., 0]
        slope = jax.grad(lambda error: jnp.sum(penalty(error, kind)))(taken - targets)
        slope = slope / (2 if kind == "squared" else 1)  # so that small errors are halved by 0.5
        weight = mask if batch.weight is None else mask * batch.weight[:, None]
        actions = q.shape[-1]
        pair = batch.obs * actions + batch.action
        same = jnp.sum(pair[:, None] == pair, axis=1)
        step = self.rate * weight * slope / same[:, None]
        columns = jnp.arange(self.heads) * actions + batch.action[:, None]
        values = self.values.at[batch.obs[:, None], columns].add(-step)
        return dataclasses.replace(self, values=values), update
