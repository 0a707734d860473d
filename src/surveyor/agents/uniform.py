"""Uniform exploration: the policy that every other agent has to beat."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.agents.base import Agent, Q
from surveyor.agents.options import Size, option
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Obs, Schedule, Transition, Update


def median_episodes(length: int) -> float:
    """Return the median number of episodes until `length` fair coins in a row fall right."""
    return -1 / math.log2(1 - 2.0**-length) if length < 50 else math.log(2) * 2.0**length


class UniformState(eqx.Module):
    """Sizes of the environment's spaces, which never change."""

    q: Float[Array, " actions"]
    """A zero for each action."""
    dimensions: int = eqx.field(static=True)
    """Number of axes of an observation."""


class Uniform(Agent[UniformState, None]):
    """An agent that knows and learns nothing: all Q values are equal, and ties are broken fairly.

    It walks to the end of a tree or chain of size L with probability 2^-L an episode;
    `median_episodes` says how long that takes.
    """

    envs: Size = option(1, on="steps")
    """Environments played side by side."""

    @property
    def schedule(self) -> Schedule:
        return Schedule(envs=self.envs)

    def init(self, spec: EnvSpec, key: PRNG) -> UniformState:
        return UniformState(jnp.zeros(spec.num_actions), len(spec.shape))

    def sample(self, state: UniformState, key: PRNG) -> None:
        """Return nothing."""

    def greedy(self, state: UniformState) -> None:
        """Return nothing."""

    def q(self, state: UniformState, index: None, obs: Obs) -> Q:
        lead = obs.shape[: obs.ndim - state.dimensions]
        return jnp.broadcast_to(state.q, (*lead, *state.q.shape))

    def observe(self, state: UniformState, transitions: Transition, mask: Mask) -> UniformState:
        return state

    def learn(self, state: UniformState, batch: Batch, key: PRNG) -> tuple[UniformState, Update]:
        return state, Update()
