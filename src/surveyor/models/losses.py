"""Targets, losses of each example with the paper's equation numbers, and objectives of them."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from surveyor.models.successors import Outputs, Phi, W
from surveyor.types import Batch, Update

Each = Float[Array, "*b"]
PerHead = Float[Array, "b g"]
Penalty = Literal["squared", "smooth_l1"]


def penalty(error: Float[Array, "*n"], kind: Penalty) -> Float[Array, "*n"]:
    """Return e², or the smooth-L1 loss: e²/2 up to |e| = 1 and |e| - 1/2 beyond."""
    if kind == "squared":
        return jnp.square(error)
    size = jnp.abs(error)
    inside = jnp.minimum(size, 1.0)
    return inside * (size - 0.5 * inside)


def bootstrap_factor(batch: Batch, discount: float) -> Float[Array, " b"]:
    """Return the factor of a target's value of s': γ, γᵐ after m steps, or 0 at the end."""
    ahead = discount if batch.discount is None else batch.discount
    return ahead * (1.0 - batch.terminated)


def td_target(batch: Batch, discount: float, next_value: PerHead) -> PerHead:
    """Return r + γ V(s') for one or several values of s', and r at the end of an episode."""
    return batch.reward[:, None] + bootstrap_factor(batch, discount)[:, None] * next_value


def per_head(batch: Batch) -> Bool[Array, "b 1 actions"] | None:
    """Return the actions that are allowed after each step, for Q values of several heads."""
    return None if batch.next_legal is None else batch.next_legal[:, None]


def weighted_mean(losses: Float[Array, " b"], batch: Batch) -> Float[Array, ""]:
    """Return the mean over a batch, each example times its weight."""
    return jnp.mean(losses if batch.weight is None else batch.weight * losses)


def successor_loss(psi: Phi, phi: Phi, next_psi: Phi, kind: Penalty = "squared") -> Each:
    """Equation 4, first term: ‖ψ_t - φ_t - γ(ψ_{t+1})†‖², given γ(ψ_{t+1})†.

    The paper sums squared errors over features; the released code averages smooth-L1 errors.
    """
    errors = penalty(psi - phi - next_psi, kind)
    return jnp.sum(errors, axis=-1) if kind == "squared" else jnp.mean(errors, axis=-1)


def reward_loss(w: W, phi: Phi, reward: Each) -> Each:
    """Equation 4, second term: |⟨ŵ, φ_t⟩ - r_{t+1}|²."""
    return jnp.square(jnp.sum(w * phi, axis=-1) - reward)


def q_loss(w: W, psi: Phi, reward: Each, next_q: Each, kind: Penalty = "squared") -> Each:
    """Equation 4, third term: |⟨ŵ, ψ_t⟩ - γ⟨ŵ, ψ_{t+1}⟩† - r_{t+1}|², given γ⟨ŵ, ψ_{t+1}⟩†."""
    return penalty(jnp.sum(w * psi, axis=-1) - reward - next_q, kind)


class Targets(NamedTuple):
    """The parts of equation 4 that are held fixed: y_SF and y_Q."""

    psi: Float[Array, "b d"]
    q: Each


Scored = tuple[Float[Array, ""], Update]
"""A loss, its terms as metrics, and each example's error of Q."""


class Equation4(eqx.Module):
    """Equation 4: successor feature loss + reward loss + Q value loss."""

    loss: Penalty
    """Penalty of the first and the third."""
    trains_phi: bool
    """True if the first trains φ as well."""

    def __call__(self, batch: Batch, targets: Targets, outputs: Outputs) -> Scored:
        psi, phi, w = outputs
        fixed_phi = phi if self.trains_phi else jax.lax.stop_gradient(phi)
        successor = successor_loss(psi, fixed_phi, targets.psi, self.loss)
        reward = reward_loss(w, phi, batch.reward)
        q = q_loss(w, psi, batch.reward, targets.q, self.loss)
        errors = psi @ w - batch.reward - targets.q
        successor, reward, q = (weighted_mean(each, batch) for each in (successor, reward, q))
        metrics = {"successor_loss": successor, "reward_loss": reward, "q_loss": q}
        return successor + reward + q, Update(metrics, errors)
