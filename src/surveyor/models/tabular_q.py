"""Q values of numbered states, as tables."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.models.losses import Penalty
from surveyor.models.q import Heads, QValues, q_losses
from surveyor.models.tables import RowAdam, Rows, Table
from surveyor.types import PRNG, Batch, EnvSpec, Update


class TabularQ(eqx.Module):
    """Q_k(s, ·) = W_kᵀ ReLU(U_k,s + b_k).

    Head k's first layer at state s is row `s · heads + k` of one table, and all that its states
    share is row k of another, so that a gradient step touches only the rows of the states and of
    the heads that it trains, and any number of heads is one batched computation.
    """

    hidden: Table
    """U: a row for each state and head."""
    shared: Table
    """b and W: a row for each head."""
    steps: Int[Array, " heads"]
    """Gradient steps that each head has taken."""
    heads: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    adam: RowAdam = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: PRNG,
        *,
        heads: int,
        width: int,
        learning_rate: float,
        outputs: bool = True,
    ) -> "TabularQ":
        """Draw Xavier normal tables; with `outputs` false W and so Q start at zero."""
        hidden_key, output_key = jax.random.split(key)
        n, k, h, a = spec.num_states, heads, width, spec.num_actions
        U = jax.random.normal(hidden_key, (n * k, h)) * (2 / (n + h)) ** 0.5
        W = jax.random.normal(output_key, (k, h * a)) * (2 / (h + a)) ** 0.5 * outputs
        shared = Table.create(jnp.concatenate([jnp.zeros((k, h)), W], axis=1))
        steps = jnp.zeros(k, jnp.int32)
        return cls(Table.create(U), shared, steps, heads, width, RowAdam(learning_rate))

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        shared = self.adam.fetch(self.shared, self._all, self.steps)
        return self._unpack(shared.value)[1]

    def features(self, obs: Int[Array, "*b"], heads: Heads | None = None) -> Float[Array, "*b g h"]:
        """Return φ(s), the hidden layer, of these heads or of all."""
        hidden, shared = self._fetch(obs, heads)
        return self._features(hidden.value, shared.value)

    def q(self, obs: Int[Array, "*b"], heads: Heads | None = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        hidden, shared = self._fetch(obs, heads)
        return self._q(hidden.value, shared.value)

    def target_q(self, obs: Int[Array, "*b"], heads: Heads | None = None) -> QValues:
        """Return Q(s, ·): tables have no target network."""
        return self.q(obs, heads)

    def fit(
        self,
        batch: Batch,
        targets: Float[Array, "b g"],
        kind: Penalty,
        heads: Heads | None = None,
        mask: Float[Array, "b g"] | float = 1.0,
    ) -> tuple["TabularQ", Update]:
        """Take one step of Adam on each head's own targets, weighted by `mask`."""
        heads = self._all if heads is None else heads
        hidden, shared = self._fetch(batch.obs, heads)

        def loss(hidden, shared):
            total, update = q_losses(self._q(hidden, shared), batch, targets, kind, mask)
            return total / len(targets), update

        gradients, update = jax.grad(loss, (0, 1), has_aux=True)(hidden.value, shared.value)
        steps, adam, ids = self.steps[heads], self.adam, self._ids(batch.obs, heads)
        new_hidden = adam.update(self.hidden, ids, hidden, gradients[0], steps)
        group = jax.tree.map(lambda x: x[None], shared)  # of which all rows are distinct
        new_shared = adam.update(self.shared, heads[None], group, gradients[1][None], steps)
        new = (new_hidden, new_shared, self.steps.at[heads].add(1))
        return TabularQ(*new, self.heads, self.width, adam), update

    def fixed(self, scale: float) -> "FixedTable":
        """Return the current Q values of every state times a factor."""
        states = jnp.arange(len(self.hidden.packed) // self.heads)
        return FixedTable(scale * jax.lax.map(self.q, states, batch_size=1024))

    @property
    def _all(self) -> Int[Array, " heads"]:
        return jnp.arange(self.heads)

    def _fetch(self, obs: Int[Array, "*b"], heads: Heads | None = None) -> tuple[Rows, Rows]:
        heads = self._all if heads is None else heads
        steps = self.steps[heads]
        hidden = self.adam.fetch(self.hidden, self._ids(obs, heads), steps)
        return hidden, self.adam.fetch(self.shared, heads, steps)

    def _ids(self, obs: Int[Array, "*b"], heads: Heads) -> Int[Array, "*b g"]:
        return obs[..., None] * self.heads + heads

    def _unpack(
        self, shared: Float[Array, "g width"]
    ) -> tuple[Float[Array, "g h"], Float[Array, "g h actions"]]:
        bias, W = shared[:, : self.width], shared[:, self.width :]
        return bias, W.reshape(len(W), self.width, -1)

    def _features(
        self, hidden: Float[Array, "*b g h"], shared: Float[Array, "g width"]
    ) -> Float[Array, "*b g h"]:
        return jax.nn.relu(hidden + self._unpack(shared)[0])

    def _q(self, hidden: Float[Array, "*b g h"], shared: Float[Array, "g width"]) -> QValues:
        # A sum for each action: as one product, XLA would transpose every array for it.
        W, features = self._unpack(shared)[1], self._features(hidden, shared)
        q = [jnp.sum(features * W[..., a], axis=-1) for a in range(W.shape[-1])]
        return jnp.stack(q, axis=-1)


class FixedTable(eqx.Module):
    """Q values of every state that are never trained."""

    values: Float[Array, "n heads actions"]

    def q(self, obs: Int[Array, "*b"], heads: Heads) -> QValues:
        """Return Q(s, ·) of these heads."""
        return self.values[obs[..., None], heads]

    def taken(self, batch: Batch, heads: Heads) -> Float[Array, "b g"]:
        """Return Q(s, a) of the actions in a batch."""
        return self.values[batch.obs[:, None], heads, batch.action[:, None]]
