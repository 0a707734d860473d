"""Q functions of numbered states: small networks whose first layer is a table."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.models.losses import Penalty, PerHead
from surveyor.models.q import Features, Heads, Mix, QValues, Weight, Which, mixed, q_losses
from surveyor.models.tables import RowAdam, Rows, Table
from surveyor.types import PRNG, Batch, EnvSpec, States, Update

Shared = Float[Array, "g width"]


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
    adam: RowAdam = eqx.field(static=True)

    @classmethod
    def create(
        cls, spec: EnvSpec, key: PRNG, *, heads: int, width: int, adam: RowAdam, outputs: bool
    ) -> "TabularQ":
        """Draw Xavier normal tables; with `outputs` false W and so Q start at zero."""
        hidden_key, output_key = jax.random.split(key)
        n, k, h, a = spec.num_states, heads, width, spec.num_actions
        U, W = jax.random.normal(hidden_key, (n * k, h)), jax.random.normal(output_key, (k, h * a))
        U, W = jax.lax.optimization_barrier((U, W))  # the same numbers, compiled or not
        U, W = U * (2 / (n + h)) ** 0.5, W * (2 / (h + a)) ** 0.5 * outputs
        shared = Table.create(jnp.concatenate([jnp.zeros((k, h)), W], axis=1))
        return cls(Table.create(U), shared, jnp.zeros(k, jnp.int32), adam)

    @property
    def heads(self) -> int:
        return len(self.steps)

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        shared = self.adam.fetch(self.shared, jnp.arange(self.heads), self.steps)
        return self._unpack(shared.value)[1]

    def features(self, obs: States, heads: Which = None) -> Features:
        hidden, shared = self._fetch(obs, heads)
        return jax.nn.relu(hidden.value + self._unpack(shared.value)[0])

    def q(self, obs: States, heads: Which = None) -> QValues:
        hidden, shared = self._fetch(obs, heads)
        return self._q(hidden.value, shared.value)

    def target_q(self, obs: States, heads: Which = None) -> QValues:
        """Return Q(s, ·): tables have no target network."""
        return self.q(obs, heads)

    def fit(
        self,
        batch: Batch,
        targets: PerHead,
        kind: Penalty,
        heads: Which = None,
        *,
        mask: Weight = 1.0,
        mix: Mix = None,
    ) -> tuple["TabularQ", Update]:
        heads = jnp.arange(self.heads) if heads is None else heads
        hidden, shared = self._fetch(batch.obs, heads)

        def loss(hidden, shared):
            q = mixed(self._q(hidden, shared), mix)
            total, update = q_losses(q, batch, targets, kind, mask)
            return total / len(targets), update

        gradients, update = jax.grad(loss, (0, 1), has_aux=True)(hidden.value, shared.value)
        steps, adam, ids = self.steps[heads], self.adam, self._ids(batch.obs, heads)
        new_hidden = adam.update(self.hidden, ids, hidden, gradients[0], steps)
        group = jax.tree.map(lambda x: x[None], shared)  # of which all rows are distinct
        new_shared = adam.update(self.shared, heads[None], group, gradients[1][None], steps)
        return TabularQ(new_hidden, new_shared, self.steps.at[heads].add(1), adam), update

    def fixed(self, scale: float) -> "FixedTable":
        states = jnp.arange(len(self.hidden.packed) // self.heads)
        return FixedTable(scale * jax.lax.map(self.q, states, batch_size=1024))

    def _fetch(self, obs: States, heads: Which) -> tuple[Rows, Rows]:
        heads = jnp.arange(self.heads) if heads is None else heads
        hidden = self.adam.fetch(self.hidden, self._ids(obs, heads), self.steps[heads])
        return hidden, self.adam.fetch(self.shared, heads, self.steps[heads])

    def _ids(self, obs: States, heads: Heads) -> Int[Array, "*b g"]:
        return obs[..., None] * self.heads + heads

    def _unpack(self, shared: Shared) -> tuple[Float[Array, "g h"], Float[Array, "g h actions"]]:
        width = self.hidden.width
        return shared[:, :width], shared[:, width:].reshape(len(shared), width, -1)

    def _q(self, hidden: Features, shared: Shared) -> QValues:
        bias, W = self._unpack(shared)
        features = jax.nn.relu(hidden + bias)
        # A sum for each action: as one product, XLA would transpose every array for it.
        q = [jnp.sum(features * W[..., a], axis=-1) for a in range(W.shape[-1])]
        return jnp.stack(q, axis=-1)


class FixedTable(eqx.Module):
    """Q values of every state that are never trained."""

    values: Float[Array, "n heads actions"]

    def q(self, obs: States, heads: Heads) -> QValues:
        """Return Q(s, ·) of these heads."""
        return self.values[obs[..., None], heads]
