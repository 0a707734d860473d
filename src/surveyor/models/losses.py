"""Targets, and losses per example with the paper's equation numbers, to be `jax.vmap`ped."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.types import Batch

Penalty = Literal["squared", "smooth_l1"]
"""Penalty of an error: squared (paper) or smooth-L1 (released code)."""


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


def td_target(
    batch: Batch, discount: float, next_value: Float[Array, "b g"]
) -> Float[Array, "b g"]:
    """Return r + γ V(s') for one or several values of s', and r at the end of an episode."""
    return batch.reward[:, None] + bootstrap_factor(batch, discount)[:, None] * next_value


def weighted_mean(losses: Float[Array, " b"], batch: Batch) -> Float[Array, ""]:
    """Return the mean over a batch, each example times its weight."""
    return jnp.mean(losses if batch.weight is None else batch.weight * losses)


def successor_loss(
    psi: Float[Array, " d"],
    phi: Float[Array, " d"],
    next_psi: Float[Array, " d"],
    kind: Penalty = "squared",
) -> Float[Array, ""]:
    """Equation 4, first term: ‖ψ_t - φ_t - γ(ψ_{t+1})†‖², given γ(ψ_{t+1})†.

    The paper sums squared errors over features; the released code averages smooth-L1 errors.
    """
    errors = penalty(psi - phi - next_psi, kind)
    return jnp.sum(errors) if kind == "squared" else jnp.mean(errors)


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
