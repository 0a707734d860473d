"""Models of UBE's u(s, ·), a bound on the variance of Q: a table, or a layer on a Q network."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from surveyor.models.layers import Dense
from surveyor.models.optimiser import Adam
from surveyor.models.tables import RowAdam, Table
from surveyor.types import EnvSpec, Obs, States

Features = Float[Array, "*b h"]
Values = Float[Array, "*b actions"]
Scalar = Float[Array, ""]
Loss = Callable[[Values], Scalar]


class TabularU(eqx.Module):
    """softplus⁻¹ of u(s, ·), a row for each state."""

    table: Table
    step: Int[Array, ""]
    adam: RowAdam = eqx.field(static=True)

    @classmethod
    def create(cls, spec: EnvSpec, start: float, learning_rate: float) -> "TabularU":
        """Return a table in which u is `start` everywhere."""
        shape = (spec.num_states, spec.num_actions)
        table = Table.create(jnp.full(shape, _softplus_inverse(start)))
        return cls(table, jnp.zeros((), jnp.int32), RowAdam(learning_rate))

    def value(self, obs: States, features: Features) -> Values:
        """Return u(s, ·), given the hidden layer of the Q model."""
        return jax.nn.softplus(self.adam.fetch(self.table, obs, self.step).value)

    def fit(self, obs: States, features: Features, loss: Loss) -> tuple["TabularU", Scalar]:
        """Take one step of Adam on a loss of u(s, ·); return the loss too."""
        rows = self.adam.fetch(self.table, obs, self.step)
        of_rows = lambda value: loss(jax.nn.softplus(value))  # noqa: E731
        found, gradient = jax.value_and_grad(of_rows)(rows.value)
        table = self.adam.update(self.table, obs, rows, gradient, self.step)
        return TabularU(table, self.step + 1, self.adam), found


class DeepU(eqx.Module):
    """A layer on the hidden layer of the Q network, which it does not train."""

    layer: Dense
    moments: optax.OptState
    adam: Adam = eqx.field(static=True)

    @classmethod
    def create(cls, spec: EnvSpec, start: float, width: int, learning_rate: float) -> "DeepU":
        """Return a layer in which u is `start` everywhere."""
        bias = jnp.full(spec.num_actions, jnp.float32(_softplus_inverse(start)))
        layer = Dense(jnp.zeros((spec.num_actions, width)), bias)
        adam = Adam(learning_rate)
        return cls(layer, adam.init(layer), adam)

    def value(self, obs: Obs, features: Features) -> Values:
        """Return u(s, ·), given the hidden layer of the Q model."""
        return _of_layer(self.layer, features)

    def fit(self, obs: Obs, features: Features, loss: Loss) -> tuple["DeepU", Scalar]:
        """Take one step of Adam on a loss of u(s, ·); return the loss too."""
        of_layer = lambda layer: loss(_of_layer(layer, features))  # noqa: E731
        found, gradient = jax.value_and_grad(of_layer)(self.layer)
        layer, moments = self.adam.update(self.layer, gradient, self.moments)
        return DeepU(layer, moments, self.adam), found


UncertaintyModel = TabularU | DeepU
"""u(s, ·), which is never negative."""


def _of_layer(layer: Dense, features: Features) -> Values:
    rows = jax.lax.stop_gradient(features).reshape(-1, features.shape[-1])
    return jax.nn.softplus(layer(rows.T)).T.reshape(*features.shape[:-1], -1)


def _softplus_inverse(value: float) -> float:
    return value + math.log(-math.expm1(-value))
