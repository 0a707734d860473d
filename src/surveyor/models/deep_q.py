"""Q values of vectors and images, as heads on one network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.models.layers import matmul
from surveyor.models.losses import Penalty
from surveyor.models.optimiser import Adam, Trained
from surveyor.models.q import Heads, QValues, q_losses
from surveyor.models.torsos import Torso, TorsoName
from surveyor.types import PRNG, Batch, EnvSpec, Obs, Update


class QNet(eqx.Module):
    """A torso, and W of every head on it."""

    torso: Torso
    W: Float[Array, "h outputs"]
    heads: int = eqx.field(static=True)

    def q(self, obs: Obs, heads: Heads | None = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        rows, lead = self.torso.flatten(obs)
        q = matmul(self.W.T, self.torso(rows)).T.reshape(*lead, self.heads, -1)
        return q if heads is None else q[..., heads, :]

    def taken(self, batch: Batch, heads: Heads) -> Float[Array, "b g"]:
        """Return Q(s, a) of the actions in a batch."""
        action = batch.action[:, None, None]
        return jnp.take_along_axis(self.q(batch.obs, heads), action, axis=-1)[..., 0]


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
        torso: TorsoName,
        adam: Adam,
        target_every: int,
        outputs: bool = True,
    ) -> "DeepQ":
        """Draw normal weights; with `outputs` false W and so Q start at zero."""
        torso_key, output_key = jax.random.split(key)
        W = jax.random.normal(output_key, (width, heads * spec.num_actions)) * width**-0.5
        net = QNet(Torso.create(spec, torso, width, torso_key), W * outputs, heads)
        return cls(Trained.create(net, adam, target_every))

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.trained.net.heads

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        W = self.trained.net.W
        return jnp.moveaxis(W.reshape(len(W), self.heads, -1), 1, 0)

    def features(self, obs: Obs, heads: Heads | None = None) -> Float[Array, "*b 1 h"]:
        """Return φ(s), which all heads share."""
        torso = self.trained.net.torso
        rows, lead = torso.flatten(obs)
        return torso(rows).T.reshape(*lead, 1, -1)

    def q(self, obs: Obs, heads: Heads | None = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        return self.trained.net.q(obs, heads)

    def target_q(self, obs: Obs, heads: Heads | None = None) -> QValues:
        """Return Q(s, ·) of the target network."""
        return self.trained.target.q(obs, heads)

    def fit(
        self,
        batch: Batch,
        targets: Float[Array, "b g"],
        kind: Penalty,
        heads: Heads | None = None,
        mask: Float[Array, "b g"] | float = 1.0,
    ) -> tuple["DeepQ", Update]:
        """Take one step of Adam on the mean over heads, each with its own targets."""

        def loss(net: QNet):
            total, update = q_losses(net.q(batch.obs, heads), batch, targets, kind, mask)
            return total / targets.size, update

        gradients, update = jax.grad(loss, has_aux=True)(self.trained.net)
        return DeepQ(self.trained.update(gradients)), update

    def fixed(self, scale: float) -> QNet:
        """Return the current network with its outputs times a factor."""
        net = self.trained.net
        return eqx.tree_at(lambda net: net.W, net, scale * net.W)
