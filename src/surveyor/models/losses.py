"""Targets, and per-example losses with the paper's equation numbers, to be `jax.vmap`ped."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.types import Batch

Penalty = Literal["squared", "smooth_l1"]
"""How an error counts: squared (paper) or smooth-L1 (released code)."""
Reduction = Literal["sum", "mean"]
"""How the errors of all features add up: ‖·‖² is their sum (paper), the released code's a mean."""


def penalty(error: Float[Array, "*n"], kind: Penalty) -> Float[Array, "*n"]:
    """e², or the smooth-L1 loss: e²/2 up to |e| = 1 and |e| - 1/2 beyond."""
    if kind == "squared":
        return jnp.square(error)
    size = jnp.abs(error)
    inside = jnp.minimum(size, 1.0)
    return inside * (size - 0.5 * inside)


def alive(batch: Batch, discount: float) -> Float[Array, " b"]:
    """What the value of s' counts for: γ, or γᵐ after m steps; 0 where the episode has ended."""
    ahead = discount if batch.discount is None else batch.discount
    return ahead * (1.0 - batch.terminated)


def td_target(
    batch: Batch, discount: float, next_value: Float[Array, "b g"]
) -> Float[Array, "b g"]:
    """r + γ V(s'), for one or several values of s'; only r where the episode has ended."""
    return batch.reward[:, None] + alive(batch, discount)[:, None] * next_value


def weighted_mean(losses: Float[Array, " b"], batch: Batch) -> Float[Array, ""]:
    """The mean over a batch, of which each example counts for its weight."""
    return jnp.mean(losses if batch.weight is None else batch.weight * losses)


def successor_loss(
    psi: Float[Array, " d"],
    phi: Float[Array, " d"],
    next_psi: Float[Array, " d"],
    kind: Penalty = "squared",
    reduction: Reduction = "sum",
) -> Float[Array, ""]:
    """Equation 4, first term: ‖ψ_t - φ_t - γ(ψ_{t+1})†‖², given γ(ψ_{t+1})†."""
    errors = penalty(psi - phi - next_psi, kind)
    return jnp.sum(errors) if reduction == "sum" else jnp.mean(errors)


def reward_loss(
    w: Float[Array, " d"], phi: Float[Array, " d"], reward: Float[Array, ""]
) -> Float[Array, ""]:
    """Equation 4, second term: |⟨ŵ, φ_t⟩ - r_{t+1}|²."""
    return jnp.square(jnp.sum(w * phi) - reward)


def q_loss(
    w: Float[Array, " d"],
    psi: Float[Array, " d"],
    reward: Float[Array, ""],
    next_q: Float[Array, ""],
    kind: Penalty = "squared",
) -> Float[Array, ""]:
    """Equation 4, third term: |⟨ŵ, ψ_t⟩ - γ⟨ŵ, ψ_{t+1}⟩† - r_{t+1}|², given γ⟨ŵ, ψ_{t+1}⟩†."""
    return penalty(jnp.sum(w * psi) - reward - next_q, kind)
