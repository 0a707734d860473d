"""Q models: an ensemble of one or many heads Q_k(s, ·) = W_kᵀ φ_k(s).

Tables for states that are numbers and networks for all other observations have the same methods.
There is no output bias: it would carry what is learnt in one state into all others, and a Gaussian
over W would not be one over Q.
"""

from typing import Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.models.losses import Penalty, PerHead, Scored, penalty
from surveyor.types import Batch, Obs, Update

Heads = Int[Array, " g"]
Which = Heads | None  # all heads if None
QValues = Float[Array, "*b g actions"]
Features = Float[Array, "*b g h"]
Weight = Float[Array, "#b g"] | float
"""Weight of each example and head, or of all."""
Mix = Float[Array, "b n k"] | None
"""Weights of k heads in each of n Q functions; None for the heads themselves."""
Model = TypeVar("Model")  # not `Self`, which beartype cannot check here


@runtime_checkable
class FixedQ(Protocol):
    """Q values that are never trained, of the heads of an ensemble."""

    def q(self, obs: Obs, heads: Heads) -> QValues:
        """Return Q(s, ·) of these heads."""
        ...


@runtime_checkable
class QHeads(Protocol):
    """One or many Q functions with their optimiser and their target network."""

    @property
    def heads(self) -> int:
        """Number of heads."""
        ...

    def q(self, obs: Obs, heads: Which = None) -> QValues:
        """Return Q(s, ·) of these heads or of all."""
        ...

    def target_q(self, obs: Obs, heads: Which = None) -> QValues:
        """Return Q(s, ·) of the target network."""
        ...

    def fit(
        self: Model, batch: Batch, targets: PerHead, kind: Penalty, *, mask: Weight = 1.0
    ) -> tuple[Model, Update]:
        """Take one step of the optimiser on each head's own targets, weighted by `mask`."""
        ...


@runtime_checkable
class QModel(QHeads, Protocol):
    """Q functions W_kᵀ φ_k(s)."""

    @property
    def weights(self) -> Float[Array, "heads h actions"]:
        """W of all heads."""
        ...

    def features(self, obs: Obs, heads: Which = None) -> Features:
        """Return φ(s), the hidden layer, of these heads or of all."""
        ...

    def fit(
        self: Model,
        batch: Batch,
        targets: PerHead,
        kind: Penalty,
        heads: Which = None,
        *,
        mask: Weight = 1.0,
        mix: Mix = None,
    ) -> tuple[Model, Update]:
        """Take one step of the optimiser on each head's own targets, weighted by `mask`.

        With `mix` the targets are those of sums of heads.
        """
        ...

    def fixed(self, scale: float) -> FixedQ:
        """Return the current Q values times a factor, to be trained no more."""
        ...


def mixed(q: Float[Array, "b k actions"], mix: Mix) -> Float[Array, "b n actions"]:
    """Return the Q values of each sum of heads."""
    return q if mix is None else jnp.einsum("bka,bgk->bga", q, mix)


def q_losses(q: QValues, batch: Batch, targets: PerHead, kind: Penalty, mask: Weight) -> Scored:
    """Return the summed loss of Q(s, a), and each example's error."""
    taken = jax.nn.one_hot(batch.action, q.shape[-1])[:, None, :]
    errors = jnp.sum(q * taken, axis=-1) - targets
    weight = mask if batch.weight is None else mask * batch.weight[:, None]
    losses = weight * penalty(errors, kind)
    return jnp.sum(losses), Update({"q_loss": jnp.mean(losses)}, jnp.mean(errors, axis=1))
