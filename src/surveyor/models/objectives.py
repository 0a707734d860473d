"""Objectives of successor models: the loss of a batch, given its targets."""

from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.models.losses import Penalty, q_loss, reward_loss, successor_loss, weighted_mean
from surveyor.models.successors import Outputs
from surveyor.types import Batch, Update


class Targets(NamedTuple):
    """The parts of equation 4 that are held fixed."""

    psi: Float[Array, "b d"]
    """y_SF."""
    q: Float[Array, " b"]
    """y_Q."""


Scored = tuple[Float[Array, ""], Update]
"""A loss, and its terms."""


@runtime_checkable
class Objective(Protocol):
    """A loss of a successor model's outputs."""

    def __call__(self, batch: Batch, targets: Targets, outputs: Outputs) -> Scored:
        """Return the loss, its terms as metrics, and each example's error of Q."""
        ...


class Equation4(eqx.Module):
    """Equation 4: successor feature loss + reward loss + Q value loss."""

    loss: Penalty
    """Penalty of the first and the third."""
    trains_phi: bool
    """True if the first trains φ as well."""

    def __call__(self, batch: Batch, targets: Targets, outputs: Outputs) -> Scored:
        psi, phi, w, _ = outputs
        fixed_phi = phi if self.trains_phi else jax.lax.stop_gradient(phi)
        successor = jax.vmap(partial(successor_loss, kind=self.loss))(psi, fixed_phi, targets.psi)
        reward = jax.vmap(partial(reward_loss, w))(phi, batch.reward)
        q = jax.vmap(partial(q_loss, w, kind=self.loss))(psi, batch.reward, targets.q)
        terms = [weighted_mean(losses, batch) for losses in (successor, reward, q)]
        names = ["successor_loss", "reward_loss", "q_loss"]
        metrics = dict(zip(names, terms, strict=True))
        return terms[0] + terms[1] + terms[2], Update(metrics, psi @ w - batch.reward - targets.q)


LEAST_W = 0.01
"""Smallest ‖ŵ‖² that the Q loss is divided by: ŵ is 0 until the first reward."""


class Weighted(eqx.Module):
    """Equation 4 with smooth-L1 losses, φ held fixed in the first, and a weight on the third."""

    q_weight: float
    per_w: bool
    """True if the Q loss is divided by ‖ŵ‖²."""
    q_trains_w: bool
    """True if the Q loss trains ŵ as well."""

    def __call__(self, batch: Batch, targets: Targets, outputs: Outputs) -> Scored:
        psi, phi, w, _ = outputs
        fixed_phi, trained = jax.lax.stop_gradient(phi), slice(outputs.trained)
        fixed_w = w if self.q_trains_w else jax.lax.stop_gradient(w)
        successors = jax.vmap(partial(successor_loss, kind="smooth_l1"))
        each = successors(psi[:, trained], fixed_phi[:, trained], targets.psi[:, trained])
        successor = weighted_mean(each, batch)
        first = batch.reward if batch.trail is None else batch.trail.reward
        reward = weighted_mean(jax.vmap(partial(reward_loss, w))(phi, first), batch)
        values = jax.vmap(partial(q_loss, fixed_w, kind="smooth_l1"))
        q = weighted_mean(values(psi, batch.reward, targets.q), batch)
        weight = self.q_weight
        if self.per_w:
            weight = weight / jnp.maximum(jax.lax.stop_gradient(jnp.vdot(w, w)), LEAST_W)
        metrics = {"successor_loss": successor, "reward_loss": reward, "q_loss": q}
        errors = psi @ fixed_w - batch.reward - targets.q
        return successor + reward + weight * q, Update(metrics, errors)
