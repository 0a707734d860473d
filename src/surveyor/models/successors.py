"""Successor models: φ̂, ψ̂ and ŵ with their optimiser, which Successor Uncertainties stands on.

Tables for states that are numbers and networks for all other observations have the same methods,
so that algorithm 1 is written once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.types import Obs

Actions = Int[Array, "*b"]
Psi = Float[Array, "*b actions d"]
Phi = Float[Array, "*b d"]
W = Float[Array, " d"]
Model = TypeVar("Model")  # not `Self`, which beartype cannot check here


class Outputs(NamedTuple):
    """The quantities in the losses of a batch: ψ̂(s, a), φ̂(s, a) and ŵ."""

    psi: Float[Array, "b d"]
    phi: Float[Array, "b d"]
    w: W


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
