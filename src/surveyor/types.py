"""The few types that environments, agents and runners share."""

from typing import TYPE_CHECKING

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

if TYPE_CHECKING:
    Arrays = Array
else:
    Arrays = Array | np.ndarray  # NumPy's where an environment steps in Python


class EnvSpec(eqx.Module):
    """What an agent needs to know of an environment before it has seen it."""

    num_states: int = eqx.field(static=True)
    """Size of a `Discrete` observation space, whose observations are numbers; 0 for all others."""
    num_actions: int = eqx.field(static=True)
    """Size of the discrete action space."""
    horizon: int = eqx.field(static=True, default=0)
    """The largest number of steps in an episode, where it is known."""
    shape: tuple[int, ...] = eqx.field(static=True, default=())
    """The shape of an observation."""
    dtype: str = eqx.field(static=True, default="int32")
    """The type of an observation's numbers."""
    stack: int = eqx.field(static=True, default=0)
    """How many frames an observation stacks along its first axis, each of which was the newest one
    in its time, so that the replay need only keep that; 0 where observations share nothing."""

    @property
    def tabular(self) -> bool:
        """Whether observations are the numbers of states."""
        return self.num_states > 0


class Transition(eqx.Module):
    """One step of experience, or a batch of them along the first axis of every leaf.

    `next_obs` is the observation that followed, before any reset; only `terminated` stops a
    target from looking beyond it.
    """

    obs: Shaped[Arrays, "..."]
    action: Int[Arrays, "*batch"]
    reward: Float[Arrays, "*batch"]
    next_obs: Shaped[Arrays, "..."]
    terminated: Bool[Arrays, "*batch"]


class Trail(eqx.Module):
    """Steps 2, 3, … of transitions over several steps."""

    obs: Shaped[Arrays, "batch steps *shape"]
    action: Int[Arrays, "batch steps"]
    discount: Float[Arrays, "batch steps"]
    """γ, γ², …, and 0 from where the episode has ended."""
    reward: Float[Arrays, " batch"]
    """Of the first step alone; the transition's own is the discounted sum of all."""


class Batch(Transition):
    """Transitions drawn from the replay."""

    number: Int[Arrays, "*batch"]
    """Which transition since the beginning of the run each of them is."""
    discount: Float[Arrays, "*batch"] | None = None
    """What Q(next_obs) counts for where the episode goes on: γ, or γᵐ after m steps."""
    trail: Trail | None = None
    """The steps between, where returns have several."""
    weight: Float[Arrays, "*batch"] | None = None
    """What each counts for in the losses, where they were not drawn uniformly."""


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

ERRORS = "td_errors"
"""Where a gradient step puts each example's error among its metrics if the batch has weights: they
decide how often a prioritised replay shows them again."""
