"""Q models: an ensemble of one or many heads Q_k(s, ·) = W_kᵀ φ_k(s).

Tables for states that are numbers and networks for all other observations have the same methods.
There is no output bias: it would carry what is learnt in one state into all others, and a Gaussian
over W would not be one over Q.
"""

import dataclasses
from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.errors import SurveyorError
from surveyor.models.layers import OwnTorso, Torso, TorsoName, make_torso, matmul
from surveyor.models.losses import Penalty, PerHead, Scored, penalty
from surveyor.models.optimiser import Adam, Trained
from surveyor.models.own import Own
from surveyor.models.tables import RowAdam, Rows, Table
from surveyor.types import PRNG, Batch, EnvSpec, Obs, States, Update

Heads = Int[Array, " g"]
Which = Heads | None  # all heads if None
QValues = Float[Array, "*b g actions"]
Features = Float[Array, "*b g h"]
Shared = Float[Array, "g width"]
Weight = PerHead | float
Model = TypeVar("Model")  # not `Self`, which beartype cannot check here


@runtime_checkable
class QModel(Protocol):
    """An ensemble of Q functions with its optimiser and its target network."""

    @property
    def heads(self) -> int:
        """Number of heads."""
        ...

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        ...

    def features(self, obs: Obs, heads: Which = None) -> Features:
        """Return φ(s), the hidden layer, of these heads or of all."""
        ...

    def q(self, obs: Obs, heads: Which = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        ...

    def target_q(self, obs: Obs, heads: Which = None) -> QValues:
        """Return Q(s, ·) of the target network."""
        ...

    def fit(
        self: Model,
        batch: Batch,
        targets: PerHead,
        kind: Penalty,
        heads: Which = None,
        mask: Weight = 1.0,
    ) -> tuple[Model, Update]:
        """Take one step of Adam on each head's own targets, weighted by `mask`."""
        ...

    def fixed(self, scale: float) -> "FixedQ":
        """Return the current Q values times a factor, to be trained no more."""
        ...


def q_losses(q: QValues, batch: Batch, targets: PerHead, kind: Penalty, mask: Weight) -> Scored:
    """Return the summed loss of Q(s, a), and each example's error."""
    taken = jax.nn.one_hot(batch.action, q.shape[-1])[:, None, :]
    errors = jnp.sum(q * taken, axis=-1) - targets
    weight = mask if batch.weight is None else mask * batch.weight[:, None]
    losses = weight * penalty(errors, kind)
    return jnp.sum(losses), Update({"q_loss": jnp.mean(losses)}, jnp.mean(errors, axis=1))


class QNet(eqx.Module):
    """A torso, and W of every head on it.

    Duelling heads (Wang et al. 2016) read the value of a state off the first half of the hidden
    layer and the advantages of its actions, whose mean is taken off, off the second half:
    Q(s, a) = V(s) + A(s, a) - mean A(s, ·). That is linear too, so φ and W have the same meaning.
    """

    torso: Torso | OwnTorso
    W: Float[Array, "h outputs"]
    """Weights of Q, or of the advantages A of duelling heads, which read the second half of φ."""
    V: Float[Array, "h heads"] | None
    """Weights of the value V of duelling heads, which read the first half of φ; else None."""
    heads: int = eqx.field(static=True)

    @property
    def outputs(self) -> Float[Array, "h outputs"]:
        """W of every head, so that Q = Wᵀφ."""
        if self.V is None:
            return self.W
        advantage = self.W.reshape(*self.V.shape, -1)
        advantage = advantage - jnp.mean(advantage, axis=-1, keepdims=True)
        value = jnp.broadcast_to(self.V[..., None], advantage.shape)
        return jnp.concatenate([value, advantage]).reshape(2 * len(self.V), -1)

    def q(self, obs: Obs, heads: Which = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        rows, lead = self.torso.flatten(obs)
        q = matmul(self.outputs.T, self.torso(rows)).T.reshape(*lead, self.heads, -1)
        return q if heads is None else q[..., heads, :]


class DeepQ(eqx.Module):
    """All heads share one network, whose hidden layer is φ(s), with its target network."""

    trained: Trained[QNet]

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: PRNG,
        *,
        heads: int,
        width: int,
        torso: TorsoName | Own = "auto",
        depth: int = 0,
        duelling: bool = False,
        adam: Adam,
        target_every: int,
        outputs: bool,
    ) -> "DeepQ":
        """Draw normal weights; with `outputs` false W and so Q start at zero.

        A duelling network has a hidden layer of `width` for V and another for A.
        """
        torso_key, output_key = jax.random.split(key)
        layers = make_torso(spec, torso, width * (1 + duelling), torso_key, depth)
        if duelling and layers.width % 2:
            said = f"the torso returns {layers.width} numbers"
            raise SurveyorError(f"Duelling heads need a vector of even length, and {said}.")
        h = layers.width // (1 + duelling)
        W = jax.random.normal(output_key, (h, heads * spec.num_actions)) * h**-0.5
        V = jax.random.normal(jax.random.fold_in(output_key, 1), (h, heads)) * h**-0.5
        net = QNet(layers, W * outputs, V * outputs if duelling else None, heads)
        return cls(Trained.create(net, adam, target_every))

    @property
    def heads(self) -> int:
        return self.trained.net.heads

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        W = self.trained.net.outputs
        return jnp.moveaxis(W.reshape(len(W), self.heads, -1), 1, 0)

    def features(self, obs: Obs, heads: Which = None) -> Features:
        """Return φ(s), which all heads share."""
        torso = self.trained.net.torso
        rows, lead = torso.flatten(obs)
        return torso(rows).T.reshape(*lead, 1, -1)

    def q(self, obs: Obs, heads: Which = None) -> QValues:
        return self.trained.net.q(obs, heads)

    def target_q(self, obs: Obs, heads: Which = None) -> QValues:
        return self.trained.target.q(obs, heads)

    def fit(
        self, batch: Batch, targets: PerHead, kind: Penalty, heads: Which = None, mask: Weight = 1.0
    ) -> tuple["DeepQ", Update]:
        """Take one step of Adam on the mean over heads of their own losses, weighted by `mask`."""

        def loss(net: QNet):
            total, update = q_losses(net.q(batch.obs, heads), batch, targets, kind, mask)
            return total / targets.size, update

        gradients, update = eqx.filter_grad(loss, has_aux=True)(self.trained.net)
        return DeepQ(self.trained.update(gradients)), update

    def fixed(self, scale: float) -> QNet:
        net = self.trained.net
        V = None if net.V is None else scale * net.V
        return dataclasses.replace(net, W=scale * net.W, V=V)


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
        self, batch: Batch, targets: PerHead, kind: Penalty, heads: Which = None, mask: Weight = 1.0
    ) -> tuple["TabularQ", Update]:
        heads = jnp.arange(self.heads) if heads is None else heads
        hidden, shared = self._fetch(batch.obs, heads)

        def loss(hidden, shared):
            total, update = q_losses(self._q(hidden, shared), batch, targets, kind, mask)
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


FixedQ = FixedTable | QNet
"""Q values that are never trained, of the heads of an ensemble."""
