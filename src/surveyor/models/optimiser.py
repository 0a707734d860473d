"""Adam for dense parameters, and networks with their target network and optimiser."""

import dataclasses
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

Params = TypeVar("Params")


@dataclasses.dataclass(frozen=True)
class Adam:
    """Adam, of gradients whose norm is clipped if a maximum is given."""

    learning_rate: float
    eps: float = 1e-8
    max_norm: float | None = None
    flat: bool = False
    """True if all arrays are updated as one: a single kernel in place of one for each."""

    @property
    def _transform(self) -> optax.GradientTransformation:
        adam = optax.adam(self.learning_rate, eps=self.eps)
        return optax.flatten(adam) if self.flat else adam

    def init(self, params: PyTree) -> optax.OptState:
        """Return the moments before the first step."""
        return self._transform.init(eqx.filter(params, eqx.is_inexact_array))

    def update(
        self, params: Params, gradients: PyTree, moments: optax.OptState
    ) -> tuple[Params, optax.OptState]:
        """Take one step; return the new parameters and moments."""
        if self.max_norm is not None:
            gradients = self._clip(gradients, self.max_norm)
        updates, moments = self._transform.update(gradients, moments)
        return eqx.apply_updates(params, updates), moments

    def _clip(self, gradients: PyTree, max_norm: float) -> PyTree:
        """Scale the gradient down to the maximum norm.

        As `optax.clip_by_global_norm`, with products in place of its reductions and one factor in
        place of its divisions: on a CPU about a quarter of the time.
        """
        square = sum(map(_square, jax.tree.leaves(gradients)))
        factor = max_norm / jnp.maximum(jnp.sqrt(square), max_norm)
        return jax.tree.map(lambda g: factor * g, gradients)


def _square(gradient: Float[Array, "..."]) -> Float[Array, ""]:
    """Return the squared norm of an array."""
    if gradient.ndim < 2:
        return jnp.vdot(gradient, gradient)
    rows = gradient**2 @ jnp.ones(gradient.shape[-1])
    return jnp.sum(jax.lax.optimization_barrier(rows))


class Trained(eqx.Module, Generic[Params]):
    """A network with its target network and its optimiser."""

    net: Params
    target: Params
    moments: optax.OptState
    step: Int[Array, ""]
    adam: Adam = eqx.field(static=True)
    target_every: int = eqx.field(static=True)
    """Gradient steps after which the target network is made equal to the network."""
    averaged: bool = eqx.field(static=True, default=False)
    """True if the target network instead moves to the network by 1/target_every of the way at every
    step, which is a running average."""

    @classmethod
    def create(
        cls, net: Params, adam: Adam, target_every: int, *, averaged: bool = False
    ) -> "Trained[Params]":
        """Return an untrained network with its target network."""
        target = jax.tree.map(jnp.copy, net)  # a buffer of its own: both are donated
        begun = (net, target, adam.init(net), jnp.zeros((), jnp.int32))
        return cls(*begun, adam, target_every, averaged)

    def update(self, gradients: Params) -> "Trained[Params]":
        """Take one step of Adam, and update the target network if it is due."""
        gradients = jax.lax.optimization_barrier(gradients)  # or XLA computes them more than once
        net, moments = self.adam.update(self.net, gradients, self.moments)
        step = self.step + 1
        if self.averaged:
            target = jax.tree.map(self._closer, net, self.target)
        else:
            target = jax.lax.cond(step % self.target_every == 0, lambda: net, lambda: self.target)
        return Trained(net, target, moments, step, self.adam, self.target_every, self.averaged)

    def _closer(self, new: Array, old: Array) -> Array:
        """Return the average of an array; of whole numbers, which are never trained, the new."""
        return old + (new - old) / self.target_every if eqx.is_inexact_array(new) else new
