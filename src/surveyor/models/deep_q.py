"""Q functions of vectors and images: heads on one network."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.errors import SurveyorError
from surveyor.models.layers import matmul
from surveyor.models.losses import Penalty, PerHead
from surveyor.models.optimiser import Adam, Trained
from surveyor.models.own import Own
from surveyor.models.q import Features, Mix, QValues, Weight, Which, mixed, q_losses
from surveyor.models.torsos import OwnTorso, Torso, TorsoName, make_torso
from surveyor.types import PRNG, Batch, EnvSpec, Obs, Update


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
        outputs, count = self.outputs, self.heads
        if heads is not None:
            outputs, count = outputs.reshape(len(outputs), count, -1)[:, heads], len(heads)
            outputs = outputs.reshape(len(outputs), -1)
        return matmul(outputs.T, self.torso(rows)).T.reshape(*lead, count, -1)


class DeepQ(eqx.Module):
    """All heads share one network, whose hidden layer is φ(s), with its target network."""

    trained: Trained[QNet]
    balance: tuple[float, ...] | None = eqx.field(static=True, default=None)
    """Weight of each head's loss, 1 on average; None if all are alike."""

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
        balance: tuple[float, ...] | None = None,
        normalised: bool = False,
        averaged: bool = False,
    ) -> "DeepQ":
        """Draw normal weights; with `outputs` false W and so Q start at zero.

        `balance` says how much each head's loss counts beside the others'; for `normalised` see
        `Torso`, for `averaged` `Trained`. A duelling network has a hidden layer of `width` for V
        and another for A.
        """
        torso_key, output_key = jax.random.split(key)
        width *= 1 + duelling
        layers = make_torso(spec, torso, width, torso_key, depth, normalised=normalised)
        if duelling and layers.width % 2:
            said = f"the torso returns {layers.width} numbers"
            raise SurveyorError(f"Duelling heads need a vector of even length, and {said}.")
        h = layers.width // (1 + duelling)
        W = jax.random.normal(output_key, (h, heads * spec.num_actions)) * h**-0.5
        V = jax.random.normal(jax.random.fold_in(output_key, 1), (h, heads)) * h**-0.5
        net = QNet(layers, W * outputs, V * outputs if duelling else None, heads)
        if balance is not None:
            balance = tuple(heads * weight / sum(balance) for weight in balance)
        return cls(Trained.create(net, adam, target_every, averaged=averaged), balance)

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
        self,
        batch: Batch,
        targets: PerHead,
        kind: Penalty,
        heads: Which = None,
        *,
        mask: Weight = 1.0,
        mix: Mix = None,
    ) -> tuple["DeepQ", Update]:
        """Take one step of Adam on the mean over heads of their own losses, weighted by `mask`."""

        weight = mask if self.balance is None else mask * jnp.array([self.balance])

        def loss(net: QNet):
            q = mixed(net.q(batch.obs, heads), mix)
            total, update = q_losses(q, batch, targets, kind, weight)
            return total / targets.size, update

        gradients, update = eqx.filter_grad(loss, has_aux=True)(self.trained.net)
        return dataclasses.replace(self, trained=self.trained.update(gradients)), update

    def fixed(self, scale: float) -> QNet:
        net = self.trained.net
        V = None if net.V is None else scale * net.V
        return dataclasses.replace(net, W=scale * net.W, V=V)
