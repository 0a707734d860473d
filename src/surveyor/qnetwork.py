"""Q networks of one hidden layer over states that are numbers: an ensemble of one or many heads.

    Q_k(s, ·) = W_kᵀ ReLU(U_k,s + b_k)

Head k's first layer at state s is row `s · heads + k` of one table, and all that its states share
is row k of another, so that a gradient step touches only the rows of the states and of the heads
that it trains, and any number of heads is one batched computation. There is no output bias: it
would carry what is learnt in one state into all others.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from surveyor.losses import Penalty, penalty
from surveyor.optim import RowAdam, Table
from surveyor.types import EnvSpec


class QState(eqx.Module):
    """The parameters of all heads, with Adam's moments."""

    hidden: Table
    """U: a row for each state and head."""
    shared: Table
    """b and W: a row for each head."""
    steps: Int[Array, " heads"]
    """Gradient steps that each head has taken."""


class QNetwork(eqx.Module):
    """What is fixed about an ensemble of Q networks."""

    heads: int
    width: int
    learning_rate: float

    def init(self, spec: EnvSpec, key: Key[Array, ""], *, outputs: bool = True) -> QState:
        """Xavier normal; with `outputs` false W starts at zero, as under a prior of mean zero."""
        hidden_key, output_key = jax.random.split(key)
        n, k, h, a = spec.num_states, self.heads, self.width, spec.num_actions
        U = jax.random.normal(hidden_key, (n * k, h)) * (2 / (n + h)) ** 0.5
        W = jax.random.normal(output_key, (k, h * a)) * (2 / (h + a)) ** 0.5 * outputs
        shared = jnp.concatenate([jnp.zeros((k, h)), W], axis=1)
        return QState(Table.create(U), Table.create(shared), jnp.zeros(k, jnp.int32))

    def features(
        self, state: QState, obs: Int[Array, "*b"], heads: Int[Array, " g"] | None = None
    ) -> Float[Array, "*b g h"]:
        """φ(s), the hidden layer, of these heads or of all."""
        hidden, shared = self._fetch(state, obs, heads)
        return self._features(hidden.value, shared.value)

    def weights(self, state: QState) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        shared = self._adam.fetch(state.shared, self.all, state.steps)
        return self._unpack(shared.value)[1]

    def q(
        self, state: QState, obs: Int[Array, "*b"], heads: Int[Array, " g"] | None = None
    ) -> Float[Array, "*b g actions"]:
        """The Q values of these heads or of all."""
        hidden, shared = self._fetch(state, obs, heads)
        return self._q(hidden.value, shared.value)

    def learn(
        self,
        state: QState,
        obs: Int[Array, " b"],
        action: Int[Array, " b"],
        targets: Float[Array, "b g"],
        kind: Penalty,
        heads: Int[Array, " g"] | None = None,
        weight: Float[Array, "b g"] | float = 1.0,
    ) -> tuple[QState, Float[Array, ""]]:
        """One step of Adam for each of these heads on its own targets; returns the mean loss."""
        heads = self.all if heads is None else heads
        hidden, shared = self._fetch(state, obs, heads)

        def loss(hidden, shared):
            q = self._q(hidden, shared)
            taken = jax.nn.one_hot(action, q.shape[-1])[:, None, :]
            q = jnp.sum(q * taken, axis=-1)
            losses = weight * penalty(q - targets, kind)
            return jnp.sum(losses) / len(obs), jnp.mean(losses)

        gradients, mean = jax.grad(loss, (0, 1), has_aux=True)(hidden.value, shared.value)
        steps, adam = state.steps[heads], self._adam
        new_hidden = adam.update(state.hidden, self._ids(obs, heads), hidden, gradients[0], steps)
        new_shared = adam.update(
            state.shared, heads[None], _group(shared), gradients[1][None], steps
        )
        return QState(new_hidden, new_shared, state.steps.at[heads].add(1)), mean

    @property
    def all(self) -> Int[Array, " heads"]:
        """Every head."""
        return jnp.arange(self.heads)

    def _fetch(self, state, obs, heads=None):
        heads = self.all if heads is None else heads
        steps = state.steps[heads]
        hidden = self._adam.fetch(state.hidden, self._ids(obs, heads), steps)
        return hidden, self._adam.fetch(state.shared, heads, steps)

    def _ids(self, obs: Int[Array, "*b"], heads: Int[Array, " g"]) -> Int[Array, "*b g"]:
        return obs[..., None] * self.heads + heads

    def _unpack(self, shared: Float[Array, "g width"]):
        bias, W = shared[:, : self.width], shared[:, self.width :]
        return bias, W.reshape(len(W), self.width, -1)

    def _features(self, hidden, shared):
        return jax.nn.relu(hidden + self._unpack(shared)[0])

    def _q(self, hidden, shared):
        # A sum for each action: as one product, XLA would turn every array round for it.
        W, features = self._unpack(shared)[1], self._features(hidden, shared)
        q = [jnp.sum(features * W[..., a], axis=-1) for a in range(W.shape[-1])]
        return jnp.stack(q, axis=-1)

    @property
    def _adam(self) -> RowAdam:
        return RowAdam(self.learning_rate)


def _group(rows):
    """Rows as one group, for a table of which all of the rows fetched are distinct."""
    return jax.tree.map(lambda x: x[None], rows)
