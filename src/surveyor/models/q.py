"""Q models: an ensemble of one or many heads Q_k(s, ·) = W_kᵀ φ_k(s).

Tables for states that are numbers and networks for all other observations have the same methods.
There is no output bias: it would carry what is learnt in one state into all others, and a Gaussian
over W would not be one over Q.
"""

from typing import Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.models.losses import Penalty, penalty
from surveyor.types import Batch, Obs, Update

Heads = Int[Array, " g"]
QValues = Float[Array, "*b g actions"]
Model = TypeVar("Model")  # not `Self`, which beartype cannot check here


@runtime_checkable
class FixedQ(Protocol):
    """Q values that are never trained, of the heads of an ensemble."""

    def q(self, obs: Obs, heads: Heads) -> QValues:
        """Return Q(s, ·) of these heads."""
        ...

    def taken(self, batch: Batch, heads: Heads) -> Float[Array, "b g"]:
        """Return Q(s, a) of the actions in a batch."""
        ...


@runtime_checkable
class QModel(Protocol):
    """An ensemble of Q functions with its optimiser."""

    @property
    def heads(self) -> int:
        """Number of heads."""
        ...

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        ...

    def features(self, obs: Obs, heads: Heads | None = None) -> Float[Array, "*b g h"]:
        """Return φ(s), the hidden layer, of these heads or of all."""
        ...

    def q(self, obs: Obs, heads: Heads | None = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        ...

    def target_q(self, obs: Obs, heads: Heads | None = None) -> QValues:
        """Return Q(s, ·) of the target network."""
        ...

    def fit(
        self: Model,
        batch: Batch,
        targets: Float[Array, "b g"],
        kind: Penalty,
        heads: Heads | None = None,
        mask: Float[Array, "b g"] | float = 1.0,
    ) -> tuple[Model, Update]:
        """Take one step of Adam on each head's own targets, weighted by `mask`."""
        ...

    def fixed(self, scale: float) -> FixedQ:
        """Return the current Q values times a factor, to be trained no more."""
        ...


def q_losses(
    q: Float[Array, "b g actions"],
    batch: Batch,
    targets: Float[Array, "b g"],
    kind: Penalty,
    mask: Float[Array, "b g"] | float,
) -> tuple[Float[Array, ""], Update]:
    """Return the summed loss of Q(s, a), and each example's error."""
    taken = jax.nn.one_hot(batch.action, q.shape[-1])[:, None, :]
    errors = jnp.sum(q * taken, axis=-1) - targets
    weight = mask if batch.weight is None else mask * batch.weight[:, None]
    losses = weight * penalty(errors, kind)
    return jnp.sum(losses), Update({"q_loss": jnp.mean(losses)}, jnp.mean(errors, axis=1))
