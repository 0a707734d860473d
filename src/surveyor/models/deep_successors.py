"""Successor features of vectors and images: the network of the paper's appendix C.2."""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.models.layers import Dense
from surveyor.models.optimiser import Adam, Trained
from surveyor.models.own import Own
from surveyor.models.successors import Actions, Loss, Outputs, Phi, Psi, W, unit
from surveyor.models.torsos import OwnTorso, Torso, TorsoName, make_torso
from surveyor.types import PRNG, EnvSpec, Obs

Hidden = Float[Array, "h b"]
Normalise = Literal["each", "together", "none"]


class SuccessorNet(eqx.Module):
    """One hidden layer, from which φ̂ and ψ̂ = ψ̄(s) + ψ̃(s, a) are read off."""

    torso: Torso | OwnTorso
    phi: Dense
    """The hidden layer to φ for each action, side by side, before their ReLU."""
    psi: Dense
    """The hidden layer to ψ̄, and to ψ̃ for each action, side by side."""
    w: W


class DeepSuccessors(eqx.Module):
    """φ̂, ψ̂ and ŵ on any torso, with their target network."""

    trained: Trained[SuccessorNet]
    actions: int = eqx.field(static=True)
    normalise: Normalise = eqx.field(static=True)
    psi_relu: bool = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: PRNG,
        *,
        features: int,
        hidden: int,
        torso: TorsoName | Own = "auto",
        depth: int = 0,
        psi_init: float = 0.0,
        psi_relu: bool = False,
        normalise: Normalise = "each",
        adam: Adam,
        target_every: int,
    ) -> "DeepSuccessors":
        """Draw an untrained network with ŵ = 0 and ψ about `psi_init`.

        `psi_init` is the bias that ψ̄ starts at.
        """
        torso_key, phi_key, psi_key, _ = jax.random.split(key, 4)
        a, d = spec.num_actions, features
        layers = make_torso(spec, torso, hidden, torso_key, depth)
        phi = Dense.create(phi_key, layers.width, a * d, gain=1.0)
        psi = Dense.create(psi_key, layers.width, (1 + a) * d, gain=1.0)
        psi = eqx.tree_at(lambda psi: psi.bias, psi, psi.bias.at[:d].set(psi_init))
        net = SuccessorNet(layers, phi, psi, jnp.zeros(d))
        return cls(Trained.create(net, adam, target_every), a, normalise, psi_relu)

    @property
    def w(self) -> W:
        return self.trained.net.w

    @property
    def target_w(self) -> W:
        return self.trained.target.w

    def psi(self, obs: Obs) -> Psi:
        return self._psi(self.trained.net, obs)

    def target_psi(self, obs: Obs) -> Psi:
        return self._psi(self.trained.target, obs)

    def phi(self, obs: Obs, action: Actions) -> Phi:
        net = self.trained.net
        rows, lead = net.torso.flatten(obs)
        phi = self._phi(net, net.torso(rows), action.reshape(-1))
        return phi.reshape(*lead, -1)

    def fit(self, obs: Obs, action: Actions, loss: Loss) -> tuple["DeepSuccessors", Any]:
        def of_net(net: SuccessorNet):
            hidden = net.torso(obs)
            taken = jax.nn.one_hot(action, self.actions)[:, :, None]
            psi = jnp.sum(self._successors(net, hidden) * taken, axis=1)
            return loss(Outputs(psi, self._phi(net, hidden, action), net.w))

        gradients, found = eqx.filter_grad(of_net, has_aux=True)(self.trained.net)
        return dataclasses.replace(self, trained=self.trained.update(gradients)), found

    def _psi(self, net: SuccessorNet, obs: Obs) -> Psi:
        rows, lead = net.torso.flatten(obs)
        psi = self._successors(net, net.torso(rows))
        return psi.reshape(*lead, self.actions, -1)

    def _successors(self, net: SuccessorNet, hidden: Hidden) -> Psi:
        both = net.psi(hidden).reshape(1 + self.actions, -1, hidden.shape[1])
        psi = jnp.moveaxis(both[:1] + both[1:], 2, 0)
        return jax.nn.relu(psi) if self.psi_relu else psi

    def _phi(self, net: SuccessorNet, hidden: Hidden, action: Actions) -> Phi:
        taken = jax.nn.one_hot(action, self.actions, axis=0)[:, None]
        outputs = net.phi(hidden).reshape(self.actions, -1, len(action))
        if self.normalise == "together":
            outputs = unit(jax.nn.relu(outputs).reshape(-1, len(action)).T).T.reshape(outputs.shape)
        phi = jax.nn.relu(jnp.sum(outputs * taken, axis=0)).T
        return unit(phi) if self.normalise == "each" else phi
