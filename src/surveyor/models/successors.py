"""Successor models: φ̂, ψ̂ and ŵ with their optimiser, which Successor Uncertainties stands on.

Tables for states that are numbers and networks for all other observations have the same methods,
so that algorithm 1 is written once. `Novelty` and `Bounded` wrap a model and change what it says.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.types import Mask, Obs

Actions = Int[Array, "*b"]
Psi = Float[Array, "*b actions d"]
Phi = Float[Array, "*b d"]
W = Float[Array, " d"]
Model = TypeVar("Model")  # not `Self`, which beartype cannot check here
Wrapped = TypeVar("Wrapped", bound="BoundedModel")


class Outputs(NamedTuple):
    """The quantities in the losses of a batch: ψ̂(s, a), φ̂(s, a) and ŵ."""

    psi: Float[Array, "b d"]
    phi: Float[Array, "b d"]
    w: W
    trained: int | None = None
    """Number of leading features that the successor loss trains; None for all."""


Loss = Callable[[Outputs], tuple[Float[Array, ""], Any]]
"""A loss of the outputs, and anything else to return."""


@runtime_checkable
class SuccessorModel(Protocol):
    """Features φ̂, successor features ψ̂ and reward weights ŵ, each with a target network."""

    @property
    def w(self) -> W:
        """ŵ."""
        ...

    @property
    def target_w(self) -> W:
        """ŵ of the target network."""
        ...

    def psi(self, obs: Obs) -> Psi:
        """Return ψ̂(s, ·)."""
        ...

    def target_psi(self, obs: Obs) -> Psi:
        """Return ψ̂(s, ·) of the target network."""
        ...

    def phi(self, obs: Obs, action: Actions) -> Phi:
        """Return φ̂(s, a)."""
        ...

    def fit(self: Model, obs: Obs, action: Actions, loss: Loss) -> tuple[Model, Any]:
        """Take one step of Adam on a loss of ψ̂(s, a), φ̂(s, a) and ŵ."""
        ...


def unit(phi: Float[Array, "*b m"]) -> Float[Array, "*b m"]:
    """Return φ / ‖φ‖, or 0 where φ is 0."""
    return phi * jax.lax.rsqrt(jnp.sum(phi**2, axis=-1, keepdims=True) + 1e-12)


class BoundedModel(eqx.Module):
    """A wrapper that says what its inner model says, within bounds; here there are none."""

    inner: Any

    @property
    def w(self) -> W:
        return self.inner.w

    @property
    def target_w(self) -> W:
        return self.inner.target_w

    def psi(self, obs: Obs) -> Psi:
        return self.inner.psi(obs)

    def target_psi(self, obs: Obs) -> Psi:
        return self.inner.target_psi(obs)

    def phi(self, obs: Obs, action: Actions) -> Phi:
        return self.inner.phi(obs, action)

    def fit(self: Wrapped, obs: Obs, action: Actions, loss: Loss) -> tuple[Wrapped, Any]:
        inner, found = self.inner.fit(obs, action, loss)
        return dataclasses.replace(self, inner=inner), found

    def widen(self: Model, reward: Float[Array, " n"], mask: Mask) -> Model:
        """Return the model with these rewards within its bounds."""
        return self

    def clip_q(self, q: Float[Array, " b"]) -> Float[Array, " b"]:
        """Return Q values within the bounds."""
        return q


class Novelty(BoundedModel):
    """A model of which the first features of ψ belong to no state: φ is constant in them, ŵ is 0.

    ψ starts at 1 in these and at 0 in all others, so that an untried action has mean Q zero, as
    under the prior, and keeps the prior's variance.
    """

    count: int = eqx.field(static=True)
    """Number of novelty features, which φ and ŵ of the inner model lack."""
    step: float = eqx.field(static=True)
    """φ of each novelty feature, the same at every step."""
    trained: int | None = eqx.field(static=True)

    @property
    def w(self) -> W:
        return self._pad(self.inner.w, 0.0)

    @property
    def target_w(self) -> W:
        return self._pad(self.inner.target_w, 0.0)

    def phi(self, obs: Obs, action: Actions) -> Phi:
        return self._pad(self.inner.phi(obs, action), self.step)

    def fit(self, obs: Obs, action: Actions, loss: Loss) -> tuple["Novelty", Any]:
        def padded(outputs: Outputs) -> tuple[Float[Array, ""], Any]:
            phi, w = self._pad(outputs.phi, self.step), self._pad(outputs.w, 0.0)
            return loss(Outputs(outputs.psi, phi, w, self.trained))

        return super().fit(obs, action, padded)

    def _pad(self, seen: Float[Array, "*b m"], novelty: float) -> Phi:
        widths = [(0, 0)] * (seen.ndim - 1) + [(self.count, 0)]
        return jnp.pad(seen, widths, constant_values=novelty)


class Bounded(BoundedModel):
    """A model whose target network says nothing that features and rewards cannot add up to.

    No discounted sum of features of norm 1 is longer than 1 / (1 - γ), and none of rewards exceeds
    the largest reward times that. With γ = 1 there is no bound.
    """

    rewards: Float[Array, "2"]
    """Smallest and largest reward so far, 0 included."""
    discount: float = eqx.field(static=True)

    def target_psi(self, obs: Obs) -> Psi:
        psi = self.inner.target_psi(obs)
        if self.discount == 1:
            return psi
        longest = 1 / (1 - self.discount)
        norm = jnp.sqrt(jnp.sum(psi**2, axis=-1, keepdims=True))
        return psi * (longest / jnp.maximum(norm, longest))

    def widen(self, reward: Float[Array, " n"], mask: Mask) -> "Bounded":
        seen = jnp.where(mask, reward, 0.0)
        low, high = self.rewards
        rewards = jnp.array([jnp.minimum(low, jnp.min(seen)), jnp.maximum(high, jnp.max(seen))])
        return dataclasses.replace(self, rewards=rewards)

    def clip_q(self, q: Float[Array, " b"]) -> Float[Array, " b"]:
        if self.discount == 1:
            return q
        low, high = self.rewards / (1 - self.discount)
        return jnp.clip(q, low, high)
