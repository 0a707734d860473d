"""Successor features of numbered states: the tabular network of the paper's appendix C.

All that belongs to one state, φ's first layer and ψ, is a row of a `surveyor.models.tables.Table`,
so that a gradient step touches only the rows of the states in its batch. All that states share is
in `Shared`.
"""

import dataclasses
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from surveyor.models.layers import matmul
from surveyor.models.optimiser import Adam
from surveyor.models.successors import Actions, Loss, Outputs, Phi, Psi, W, unit
from surveyor.models.tables import RowAdam, Table
from surveyor.types import PRNG, EnvSpec, States

Layers = Literal["one", "two"]
Hidden = Float[Array, "*b h"]


class Shared(eqx.Module):
    """The parameters that every state uses."""

    w: W
    hidden_bias: Float[Array, " d"]
    action: Float[Array, "actions inputs d"]
    """Each action's second layer (two layers), or its summand to the first (one layer)."""
    action_bias: Float[Array, "actions d"]


class TabularSuccessors(eqx.Module):
    """φ̂, ψ̂ and ŵ for states that are numbers.

    ψ is linear in the one-hot state-action vector: a row holds ψ(s, a) for every action. φ has

    - one layer (paper): φ(s, a) = ReLU(U_s + V_a), from one-hot state and action vectors;
    - two layers (released code): φ(s, a) = ReLU(V_aᵀ ReLU(U_s + b) + c_a).
    """

    rows: Table
    """ψ̂(s, ·) and U_s of each state."""
    shared: Shared
    moments: optax.OptState
    step: Int[Array, ""]
    actions: int = eqx.field(static=True)
    features: int = eqx.field(static=True)
    layers: Layers = eqx.field(static=True)
    normalise: bool = eqx.field(static=True)
    row_adam: RowAdam = eqx.field(static=True)
    adam: Adam = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: PRNG,
        *,
        features: int,
        psi_init: float,
        layers: Layers = "one",
        normalise: bool = True,
        learning_rate: float,
    ) -> "TabularSuccessors":
        """Draw untrained tables: folded Xavier normal φ, ψ = `psi_init`, and ŵ = 0."""
        state_key, action_key = jax.random.split(key)
        n, a, d = spec.num_states, spec.num_actions, features
        U = _folded_xavier(state_key, (n, d), n + d)
        if layers == "two":
            V = _folded_xavier(action_key, (a, d, d), d + a * d)
        else:  # a hidden unit is a feature
            V = _folded_xavier(action_key, (a, 1, d), n + d)
        psi = jnp.full((n, a * d), psi_init)
        shared = Shared(jnp.zeros(d), jnp.zeros(d), V, jnp.zeros((a, d)))
        adam, row_adam = Adam(learning_rate, flat=True), RowAdam(learning_rate)
        rows = Table.create(jnp.concatenate([psi, U], axis=1))
        start = (rows, shared, adam.init(shared), jnp.zeros((), jnp.int32))
        return cls(*start, a, d, layers, normalise, row_adam, adam)

    @property
    def w(self) -> W:
        return self.shared.w

    @property
    def target_w(self) -> W:
        """ŵ: tables have no target network."""
        return self.shared.w

    def psi(self, obs: States) -> Psi:
        return self.split(self.row_adam.fetch(self.rows, obs, self.step).value)[0]

    def target_psi(self, obs: States) -> Psi:
        return self.psi(obs)

    def phi(self, obs: States, action: Actions) -> Phi:
        rows = self.row_adam.fetch(self.rows, obs.reshape(-1), self.step).value
        phi = self.features_of(self.split(rows)[1], action.reshape(-1), self.shared)
        return phi.reshape(*obs.shape, -1)

    def fit(self, obs: States, action: Actions, loss: Loss) -> tuple["TabularSuccessors", Any]:
        rows = self.row_adam.fetch(self.rows, obs, self.step)

        def of_parameters(parameters):
            psi, hidden, shared = parameters
            taken = jax.nn.one_hot(action, self.actions)[:, :, None]
            psi = jnp.sum(psi * taken, axis=1)
            return loss(Outputs(psi, self.features_of(hidden, action, shared), shared.w))

        parameters = (*self.split(rows.value), self.shared)
        (psi, hidden, shared), found = jax.grad(of_parameters, has_aux=True)(parameters)
        gradient = jnp.concatenate([psi.reshape(len(psi), -1), hidden], axis=1)
        table = self.row_adam.update(self.rows, obs, rows, gradient, self.step)
        shared, moments = self.adam.update(self.shared, shared, self.moments)
        new = {"rows": table, "shared": shared, "moments": moments, "step": self.step + 1}
        return dataclasses.replace(self, **new), found

    def split(self, rows: Float[Array, "*b both"]) -> tuple[Psi, Hidden]:
        """Return ψ̂(s, ·) and U_s of the states with these rows."""
        width = self.actions * self.features
        psi = rows[..., :width].reshape(*rows.shape[:-1], self.actions, self.features)
        return psi, rows[..., width:]

    def features_of(self, hidden: Hidden, action: Actions, shared: Shared) -> Phi:
        """Return φ̂(s, a) from rows U_s and the shared parameters."""
        taken = jax.nn.one_hot(action, self.actions)[:, :, None]
        if self.layers == "two":
            a, d, _ = shared.action.shape
            hidden = jax.nn.relu(hidden + shared.hidden_bias)
            weights = jnp.moveaxis(shared.action, 0, 1).reshape(d, a * d)
            outputs = matmul(hidden, weights).reshape(-1, a, d) + shared.action_bias
        else:
            outputs = hidden[:, None] + shared.action[:, 0]
        phi = jax.nn.relu(jnp.sum(outputs * taken, axis=1))
        return unit(phi) if self.normalise else phi


def _folded_xavier(key: PRNG, shape: tuple[int, ...], units: int) -> Float[Array, "*shape"]:
    """Draw |N(0, 2 / units)|, units in and out: non-negative, so that no ReLU starts out dead."""
    return jnp.abs(jax.random.normal(key, shape)) * (2 / units) ** 0.5
