"""Uniform exploration: the policy that every other agent has to beat."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents.base import Agent
from surveyor.agents.options import option
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Obs, Schedule, Transition, Update


def median_episodes(length: int) -> float:
    """Return the median number of episodes until `length` fair coins in a row fall right."""
    return -1 / math.log2(1 - 2.0**-length) if length < 50 else math.log(2) * 2.0**length


class Uniform(Agent[Float[Array, " actions"], None]):
    """An agent that knows and learns nothing: all Q values are equal, and ties are broken fairly.

    It walks to the end of a tree or chain of size L with probability 2^-L an episode;
    `median_episodes` says how long that takes.
    """

    envs: int = option(1, on="steps")
    """Environments played side by side."""

    @property
    def schedule(self) -> Schedule:
        """No updates."""
        return Schedule(envs=self.envs)

    def init(self, spec: EnvSpec, key: PRNG) -> Float[Array, " actions"]:
        """Return a row of zeros, whose shape is the number of actions."""
        return jnp.zeros(spec.num_actions)

    def sample(self, state: Float[Array, " actions"], key: PRNG) -> None:
        """Return nothing."""

    def greedy(self, state: Float[Array, " actions"]) -> None:
        """Return nothing."""

    def q(
        self, state: Float[Array, " actions"], index: None, obs: Obs
    ) -> Float[Array, "*b actions"]:
        """Return zeros."""
        return jnp.broadcast_to(state, (*obs.shape, *state.shape))

    def act(
        self,
        state: Float[Array, " actions"],
        index: None,
        obs: Obs,
        u: Float[Array, " actions"],
    ) -> Int[Array, ""]:
        """Return any action."""
        return jnp.argmax(u)

    def observe(
        self, state: Float[Array, " actions"], transitions: Transition, mask: Mask
    ) -> Float[Array, " actions"]:
        """Change nothing."""
        return state

    def learn(
        self, state: Float[Array, " actions"], batch: Batch, key: PRNG
    ) -> tuple[Float[Array, " actions"], Update]:
        """Change nothing."""
        return state, Update()
