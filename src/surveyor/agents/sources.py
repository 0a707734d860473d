"""SU as the paper's text and as its released code have it, with nothing of ours."""

import dataclasses

from surveyor.agents.su import SU


def text_tree() -> SU:
    """The tree as the paper's text has it: table 2 and algorithm 1, nothing of ours; γ = 1 as
    in the released code, and ψ starting at 1 as there. It does not solve large trees."""
    return dataclasses.replace(text_chain(), theta=1e4, beta=1e-3, discount=1.0, gradient_steps=10)


def text_chain() -> SU:
    """The chain as the paper's text has it: table 3 and algorithm 1, nothing of ours."""
    return SU(
        beta=1e-2,
        discount=0.99,
        novelty=0,
        loss="squared",
        feature_reduction="sum",
        successor_trains_phi=True,
        q_weight=1.0,
        q_trains_w=True,
        q_target="policy",
        policy="joint",
        recent=0,
        best=0,
        value_eps=1e-8,
        successor_trains="all",
        replay_capacity=10_000,
    )


def released_tree() -> SU:
    """The tree as the released code runs it."""
    return dataclasses.replace(
        released_chain(), theta=1e-6, features=50, policy_scale=1e-3, gradient_steps=10
    )


def released_chain() -> SU:
    """The chain as the released code runs it."""
    return SU(
        discount=1.0,
        layers="two",
        normalise=False,
        novelty=0,
        q_weight=1.0,
        q_trains_w=True,
        policy="marginal",
        policy_scale=1e-2,
        recent=0,
        best=0,
        value_eps=1e-8,
        successor_trains="all",
        replay_capacity=10_000,
    )


def text_atari() -> SU:
    """Atari as the paper's text has it: equation 4, appendix C.2 and table 4, nothing of ours; γ,
    the replay and 100,000 random steps, of which it is silent, as in the released code."""
    return dataclasses.replace(
        SU.atari(),
        loss="squared",
        feature_reduction="sum",
        successor_trains_phi=True,
        q_target="policy",
        psi_relu=True,
        bound_targets=False,
    )


def released_atari() -> SU:
    """Atari as the released code runs it: Σ_w = 1e-6 (I + Σφφᵀ)⁻¹, and w drawn anew every 250
    steps."""
    return dataclasses.replace(
        SU.atari(),
        theta=1e-6,
        beta=1e-6,
        zeta=1.0,
        normalise_together=True,
        psi_relu=True,
        redraw_every=250,
        bound_targets=False,
    )
