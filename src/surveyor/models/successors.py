"""φ̂, ψ̂ and ŵ with their optimisers: what Successor Uncertainties stands on.

Two kinds with the same methods, so that algorithm 1 is written once: a table for states that are
numbers, and a network for all other observations.

    psi(obs), next_psi(obs)      ψ̂(s, ·), to act on and for targets
    phi(obs, action)             φ̂(s, a), without the novelty features
    w, next_w                    ŵ, over the same features
    fetch(obs)                   the parameters that a step on these observations trains
    outputs(parameters, …)       ψ̂(s, a), φ̂(s, a) and ŵ as a function of those, for gradients
    update(obs, …, gradients)    one step of Adam
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, PyTree, Shaped

from surveyor.agents.su_options import SUOptions
from surveyor.models.deep import DeepAdam, Dense, Torso, Trained
from surveyor.models.networks import Shared, TabularNetwork, unit
from surveyor.models.tables import RowAdam, Rows, Table
from surveyor.types import EnvSpec


class Outputs(NamedTuple):
    """What the losses are made of."""

    psi: Float[Array, "b d"]
    phi: Float[Array, "b m"]
    w: Float[Array, " m"]


class TabularSuccessors(eqx.Module):
    """Tables, of which a step touches the rows of the states in its batch."""

    rows: Table
    """For each state ψ̂(s, ·), and U_s, the first layer of the φ network."""
    shared: Shared
    optimiser: optax.OptState
    step: Int[Array, ""]
    network: TabularNetwork = eqx.field(static=True)
    learning_rate: float = eqx.field(static=True)
    value_eps: float = eqx.field(static=True)
    novelty_eps: float = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: Key[Array, ""],
        network: TabularNetwork,
        learning_rate: float,
        value_eps: float,
        novelty_eps: float,
    ) -> "TabularSuccessors":
        """Tables that have seen nothing."""
        hidden, psi, shared = network.init(spec, key)
        rows = Table.create(jnp.concatenate([psi, hidden], axis=1))
        optimiser = _flat_adam(learning_rate, value_eps).init(eqx.filter(shared, eqx.is_array))
        step = jnp.zeros((), jnp.int32)
        fixed = (network, learning_rate, value_eps, novelty_eps)
        return cls(rows, shared, optimiser, step, *fixed)

    @property
    def w(self) -> Float[Array, " m"]:
        """ŵ."""
        return self.shared.w

    next_w = w

    def psi(self, obs: Int[Array, "*b"]) -> Float[Array, "*b actions d"]:
        """ψ̂(s, ·)."""
        return self._split(obs)[0]

    next_psi = psi

    def phi(self, obs: Int[Array, "*b"], action: Int[Array, "*b"]) -> Float[Array, "*b m"]:
        """φ̂(s, a)."""
        hidden = self._split(obs.reshape(-1))[1]
        phi = self.network.phi(hidden, action.reshape(-1), self.shared)
        return phi.reshape(*obs.shape, -1)

    def fetch(self, obs: Int[Array, " b"]) -> tuple[PyTree, Rows]:
        """ψ̂(s, ·), U_s and what all states share; and the rows with Adam's moments."""
        rows = self._adam.fetch(self.rows, obs, self.step)
        return (*self.network.split(rows.value), self.shared), rows

    def outputs(self, parameters: PyTree, obs: Any, action: Int[Array, " b"]) -> Outputs:
        """ψ̂(s, a), φ̂(s, a) and ŵ."""
        psi, hidden, shared = parameters
        taken = jax.nn.one_hot(action, self.network.actions)[:, :, None]
        psi = jnp.sum(psi * taken, axis=1)
        return Outputs(psi, self.network.phi(hidden, action, shared), shared.w)

    def update(self, obs: Int[Array, " b"], rows: Rows, gradients: PyTree) -> "TabularSuccessors":
        """One step of Adam."""
        psi, hidden, shared = gradients
        gradient = jnp.concatenate([psi.reshape(len(psi), -1), hidden], axis=1)
        table = self._adam.update(self.rows, obs, rows, gradient, self.step)
        adam = _flat_adam(self.learning_rate, self.value_eps)
        updates, optimiser = adam.update(shared, self.optimiser)
        new = (table, eqx.apply_updates(self.shared, updates), optimiser, self.step + 1)
        fixed = (self.network, self.learning_rate, self.value_eps, self.novelty_eps)
        return TabularSuccessors(*new, *fixed)

    def _split(self, obs):
        rows = self._adam.fetch(self.rows, obs, self.step).value
        return self.network.split(rows)

    @property
    def _adam(self) -> RowAdam:
        network = self.network
        psi = (self.novelty_eps,) * network.novelty + (self.value_eps,) * network.seen
        psi = psi * network.actions
        hidden = (self.value_eps,) * (self.rows.width - len(psi))
        return RowAdam(self.learning_rate, eps=psi + hidden)


class SuccessorNet(eqx.Module):
    """Appendix C.2: one hidden layer, from which φ̂ and ψ̂ = ψ̄(s) + ψ̃(s, a) are read off."""

    torso: Torso
    phi: Dense
    """The hidden layer to φ for each action, side by side, before their ReLU."""
    psi: Dense
    """The hidden layer to ψ̄, and to ψ̃ for each action, side by side."""
    w: Float[Array, " m"]


class DeepSuccessors(eqx.Module):
    """The network of appendix C.2 on any torso, with its target network."""

    trained: Trained
    waves: "Waves | None"
    actions: int = eqx.field(static=True)
    options: SUOptions = eqx.field(static=True)

    @classmethod
    def create(
        cls, spec: EnvSpec, key: Key[Array, ""], options: SUOptions, adam: DeepAdam
    ) -> "DeepSuccessors":
        """A network that has seen nothing: ŵ = 0, and ψ about psi_init in what no state has."""
        torso_key, phi_key, psi_key, wave_key = jax.random.split(key, 4)
        a, d, k = spec.num_actions, options.features, options.random_features
        hidden, m = options.hidden, d - options.novelty
        phi = Dense.create(phi_key, hidden, a * (m - k), gain=1.0)
        psi = Dense.create(psi_key, hidden, (1 + a) * d, gain=1.0)
        unseen = (jnp.arange(d) < options.novelty) | (options.novelty == 0)
        first = psi.bias.at[:d].set(jnp.where(unseen, options.psi_init, 0.0))
        psi = eqx.tree_at(lambda psi: psi.bias, psi, first)
        torso = Torso.create(spec, options.torso, hidden, torso_key)
        net = SuccessorNet(torso, phi, psi, jnp.zeros(m))
        waves = Waves.create(spec, k, options.random_scale, wave_key) if k else None
        return cls(Trained.create(net, adam), waves, a, options)

    @property
    def w(self) -> Float[Array, " m"]:
        """ŵ."""
        return self.trained.net.w

    @property
    def next_w(self) -> Float[Array, " m"]:
        """The same of the target network."""
        return self.trained.target.w

    def psi(self, obs: Shaped[Array, "..."]) -> Float[Array, "*b actions d"]:
        """ψ̂(s, ·)."""
        return self._psi(self.trained.net, obs)

    def next_psi(self, obs: Shaped[Array, "..."]) -> Float[Array, "*b actions d"]:
        """The same from the target network."""
        return self._psi(self.trained.target, obs)

    def phi(self, obs: Shaped[Array, "..."], action: Int[Array, "*b"]) -> Float[Array, "*b m"]:
        """φ̂(s, a)."""
        net = self.trained.net
        rows, lead = net.torso.flatten(obs)
        phi = self._phi(net, net.torso(rows), rows, action.reshape(-1))
        return phi.reshape(*lead, -1)

    def fetch(self, obs: Any) -> tuple[SuccessorNet, None]:
        """The whole network."""
        return self.trained.net, None

    def outputs(
        self, parameters: SuccessorNet, obs: Shaped[Array, "b ..."], action: Int[Array, " b"]
    ) -> Outputs:
        """ψ̂(s, a), φ̂(s, a) and ŵ."""
        hidden = parameters.torso(obs)
        taken = jax.nn.one_hot(action, self.actions)[:, :, None]
        psi = jnp.sum(self._successors(parameters, hidden) * taken, axis=1)
        return Outputs(psi, self._phi(parameters, hidden, obs, action), parameters.w)

    def update(self, obs: Any, fetched: None, gradients: SuccessorNet) -> "DeepSuccessors":
        """One step of Adam, and a new target network where one is due."""
        return eqx.tree_at(lambda model: model.trained, self, self.trained.update(gradients))

    def _psi(self, net: SuccessorNet, obs):
        rows, lead = net.torso.flatten(obs)
        psi = self._successors(net, net.torso(rows))
        return psi.reshape(*lead, self.actions, -1)

    def _successors(
        self, net: SuccessorNet, hidden: Float[Array, "h b"]
    ) -> Float[Array, "b actions d"]:
        both = net.psi(hidden).reshape(1 + self.actions, -1, hidden.shape[1])
        psi = jnp.moveaxis(both[:1] + both[1:], 2, 0)
        return jax.nn.relu(psi) if self.options.psi_relu else psi

    def _phi(
        self,
        net: SuccessorNet,
        hidden: Float[Array, "h b"],
        obs: Shaped[Array, "b ..."],
        action: Int[Array, " b"],
    ) -> Float[Array, "b m"]:
        taken = jax.nn.one_hot(action, self.actions, axis=0)[:, None]
        outputs = net.phi(hidden).reshape(self.actions, -1, len(action))
        if self.options.normalise and self.options.normalise_together:
            outputs = unit(jax.nn.relu(outputs).reshape(-1, len(action)).T).T.reshape(outputs.shape)
        phi = jax.nn.relu(jnp.sum(outputs * taken, axis=0)).T
        if self.options.normalise and not self.options.normalise_together:
            phi = unit(phi)
        if self.waves is None:
            return phi
        return jnp.concatenate([phi, self.waves(obs, action)], axis=1) * 0.5**0.5


class Waves(eqx.Module):
    """Random Fourier features of an observation and an action (Rahimi and Recht 2007), of norm
    about 1, which nothing trains."""

    directions: Float[Array, "actions inputs k"]
    phases: Float[Array, "actions k"]
    scale: float = eqx.field(static=True)
    """Of an observation: bytes to [0, 1], and a distance in an image by the root of its pixels."""

    @classmethod
    def create(cls, spec: EnvSpec, count: int, scale: float, key: Key[Array, ""]) -> "Waves":
        """So many, whose dot product is a Gaussian kernel of width 1 / scale."""
        first, second = jax.random.split(key)
        inputs = math.prod(spec.shape)
        directions = scale * jax.random.normal(first, (spec.num_actions, inputs, count))
        phases = jax.random.uniform(second, (spec.num_actions, count), maxval=2 * math.pi)
        unit = 1 / 255 if spec.dtype == "uint8" else 1.0
        return cls(directions, phases, unit / (inputs**0.5 if len(spec.shape) == 3 else 1.0))

    def __call__(
        self, obs: Shaped[Array, "b ..."], action: Int[Array, " b"]
    ) -> Float[Array, "b k"]:
        x = obs.reshape(len(obs), -1).astype(jnp.float32) * self.scale
        angles = jnp.einsum("bi,aik->bak", x, self.directions) + self.phases
        taken = jax.nn.one_hot(action, len(self.phases))[:, :, None]
        waves = jnp.cos(jnp.sum(angles * taken, axis=1))
        return waves * (2 / self.phases.shape[1]) ** 0.5


def _flat_adam(learning_rate: float, eps: float) -> optax.GradientTransformation:
    # Flattened: one small kernel in place of one for each array.
    return optax.flatten(optax.adam(learning_rate, eps=eps))
