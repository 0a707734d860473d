"""Q networks: an ensemble of one or many heads, as tables for states that are numbers and as one
network for all other observations, with the same methods.

    Q_k(s, ·) = W_kᵀ φ_k(s)

There is no output bias: it would carry what is learnt in one state into all others, and a Gaussian
over W would not be one over Q.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, Shaped

from surveyor.models.deep import DeepAdam, Torso, TorsoName, Trained, times
from surveyor.models.losses import Penalty, penalty
from surveyor.models.tables import RowAdam, Table
from surveyor.types import ERRORS, Batch, EnvSpec, Metrics


class TabularQ(eqx.Module):
    """φ_k(s) = ReLU(U_k,s + b_k).

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
    learning_rate: float = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: Key[Array, ""],
        heads: int,
        width: int,
        learning_rate: float,
        *,
        outputs: bool = True,
    ) -> "TabularQ":
        """Xavier normal; with `outputs` false W starts at zero, as under a prior of mean zero."""
        hidden_key, output_key = jax.random.split(key)
        n, k, h, a = spec.num_states, heads, width, spec.num_actions
        U = jax.random.normal(hidden_key, (n * k, h)) * (2 / (n + h)) ** 0.5
        W = jax.random.normal(output_key, (k, h * a)) * (2 / (h + a)) ** 0.5 * outputs
        shared = Table.create(jnp.concatenate([jnp.zeros((k, h)), W], axis=1))
        steps = jnp.zeros(k, jnp.int32)
        return cls(Table.create(U), shared, steps, heads, width, learning_rate)

    def features(
        self, obs: Int[Array, "*b"], heads: Int[Array, " g"] | None = None
    ) -> Float[Array, "*b g h"]:
        """φ(s), the hidden layer, of these heads or of all."""
        hidden, shared = self._fetch(obs, heads)
        return self._features(hidden.value, shared.value)

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        shared = self._adam.fetch(self.shared, self.all, self.steps)
        return self._unpack(shared.value)[1]

    def q(
        self, obs: Int[Array, "*b"], heads: Int[Array, " g"] | None = None
    ) -> Float[Array, "*b g actions"]:
        """The Q values of these heads or of all."""
        hidden, shared = self._fetch(obs, heads)
        return self._q(hidden.value, shared.value)

    next_q = q
    """Q values for targets."""

    def learn(
        self,
        batch: Batch,
        targets: Float[Array, "b g"],
        kind: Penalty,
        heads: Int[Array, " g"] | None = None,
        mask: Float[Array, "b g"] | float = 1.0,
    ) -> tuple["TabularQ", Metrics]:
        """One step of Adam for each of these heads on its own targets."""
        heads = self.all if heads is None else heads
        hidden, shared = self._fetch(batch.obs, heads)

        def loss(hidden, shared):
            q = self._q(hidden, shared)
            total, metrics = _losses(q, batch, targets, kind, mask)
            return total / len(targets), metrics

        gradients, metrics = jax.grad(loss, (0, 1), has_aux=True)(hidden.value, shared.value)
        steps, adam, ids = self.steps[heads], self._adam, self._ids(batch.obs, heads)
        new_hidden = adam.update(self.hidden, ids, hidden, gradients[0], steps)
        new_shared = adam.update(
            self.shared, heads[None], _group(shared), gradients[1][None], steps
        )
        new = (new_hidden, new_shared, self.steps.at[heads].add(1))
        return TabularQ(*new, self.heads, self.width, self.learning_rate), metrics

    @property
    def all(self) -> Int[Array, " heads"]:
        """Every head."""
        return jnp.arange(self.heads)

    def _fetch(self, obs, heads=None):
        heads = self.all if heads is None else heads
        steps = self.steps[heads]
        hidden = self._adam.fetch(self.hidden, self._ids(obs, heads), steps)
        return hidden, self._adam.fetch(self.shared, heads, steps)

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


class QNet(eqx.Module):
    """A torso, and W of every head on it."""

    torso: Torso
    W: Float[Array, "h outputs"]

    def __call__(self, obs: Shaped[Array, "b ..."]) -> Float[Array, "b outputs"]:
        return times(self.W.T, self.torso(obs)).T


class DeepQ(eqx.Module):
    """φ(s) is the hidden layer of a network that all heads share, with its target network."""

    trained: Trained
    heads: int = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: Key[Array, ""],
        heads: int,
        width: int,
        torso: TorsoName,
        adam: DeepAdam,
        *,
        outputs: bool = True,
    ) -> "DeepQ":
        """Normal weights; with `outputs` false W starts at zero, as under a prior of mean zero."""
        torso_key, output_key = jax.random.split(key)
        W = jax.random.normal(output_key, (width, heads * spec.num_actions)) * width**-0.5
        net = QNet(Torso.create(spec, torso, width, torso_key), W * outputs)
        return cls(Trained.create(net, adam), heads)

    def features(self, obs: Shaped[Array, "..."], heads: Any = None) -> Float[Array, "*b 1 h"]:
        """φ(s), the same for all heads."""
        rows, lead = self.trained.net.torso.flatten(obs)
        return self.trained.net.torso(rows).T.reshape(*lead, 1, -1)

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        W = self.trained.net.W
        return jnp.moveaxis(W.reshape(len(W), self.heads, -1), 1, 0)

    def q(
        self, obs: Shaped[Array, "..."], heads: Int[Array, " g"] | None = None
    ) -> Float[Array, "*b g actions"]:
        """The Q values of these heads or of all."""
        return self._q(self.trained.net, obs, heads)

    def next_q(
        self, obs: Shaped[Array, "..."], heads: Int[Array, " g"] | None = None
    ) -> Float[Array, "*b g actions"]:
        """The same from the target network."""
        return self._q(self.trained.target, obs, heads)

    def learn(
        self,
        batch: Batch,
        targets: Float[Array, "b g"],
        kind: Penalty,
        heads: Int[Array, " g"] | None = None,
        mask: Float[Array, "b g"] | float = 1.0,
    ) -> tuple["DeepQ", Metrics]:
        """One step of Adam on the mean over these heads, each with its own targets."""

        def loss(net):
            q = self._q(net, batch.obs, heads)
            total, metrics = _losses(q, batch, targets, kind, mask)
            return total / targets.size, metrics

        gradients, metrics = jax.grad(loss, has_aux=True)(self.trained.net)
        return DeepQ(self.trained.update(gradients), self.heads), metrics

    def _q(self, net: QNet, obs, heads):
        rows, lead = net.torso.flatten(obs)
        q = net(rows).reshape(*lead, self.heads, -1)
        return q if heads is None else q[..., heads, :]


def _losses(q, batch: Batch, targets, kind: Penalty, mask):
    """The sum of what the errors of Q(s, a) count for, and what to report of them."""
    taken = jax.nn.one_hot(batch.action, q.shape[-1])[:, None, :]
    errors = jnp.sum(q * taken, axis=-1) - targets
    weight = mask if batch.weight is None else mask * batch.weight[:, None]
    losses = weight * penalty(errors, kind)
    metrics = {"q_loss": jnp.mean(losses)}
    if batch.weight is not None:
        metrics[ERRORS] = jnp.mean(errors, axis=1)
    return jnp.sum(losses), metrics


def _group(rows):
    """Rows as one group, for a table of which all of the rows fetched are distinct."""
    return jax.tree.map(lambda x: x[None], rows)
