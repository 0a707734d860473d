"""The few types that environments, agents and runners share."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped


class EnvSpec(eqx.Module):
    """What an agent needs to know of an environment before it has seen it."""

    num_states: int = eqx.field(static=True)
    """Size of a `Discrete` observation space."""
    num_actions: int = eqx.field(static=True)
    """Size of the discrete action space."""
    horizon: int = eqx.field(static=True)
    """The largest number of steps in an episode."""


class Transition(eqx.Module):
    """One step of experience, or a batch of them along the first axis of every leaf.

    `next_obs` is the observation that followed, before any reset; only `terminated` stops a
    target from looking beyond it.
    """

    obs: Shaped[Array, "*batch"]
    action: Int[Array, "*batch"]
    reward: Float[Array, "*batch"]
    next_obs: Shaped[Array, "*batch"]
    terminated: Bool[Array, "*batch"]


class Batch(Transition):
    """Transitions drawn from the replay."""

    number: Int[Array, "*batch"]
    """Which transition since the beginning of the run each of them is."""


class QPosterior(eqx.Module):
    """The belief about Q at some observations.

    Row and column `i * num_actions + a` of the covariance belong to `mean[i, a]`.
    """

    mean: Float[Array, "observations actions"]
    covariance: Float[Array, "pairs pairs"]


Metrics = dict[str, Float[Array, ""]]
"""Named scalars that one gradient step reports."""

State = PyTree
"""An agent's state: everything of it that changes. Its structure is the agent's own affair."""
