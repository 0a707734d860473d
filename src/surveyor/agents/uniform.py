"""Uniform exploration: the policy that every other agent has to beat."""

import math

import jax.numpy as jnp

from surveyor.agents.base import Agent


def median_episodes(length: int) -> float:
    """The median number of episodes until `length` fair coins in a row fall right."""
    return -1 / math.log2(1 - 2.0**-length) if length < 50 else math.log(2) * 2.0**length


class Uniform(Agent):
    """Knows nothing and learns nothing: all Q values are equal, and ties are broken fairly.

    It walks to the end of a tree or chain of size L with probability 2^-L an episode;
    `median_episodes` says how long that takes.
    """

    def init(self, spec, key):
        """No parameters; only the number of actions, as the shape of a row of zeros."""
        return jnp.zeros(spec.num_actions)

    def sample(self, state, key):
        return None

    def greedy(self, state):
        return None

    def q(self, state, index, obs):
        return jnp.broadcast_to(state, (*obs.shape, *state.shape))

    def act(self, state, index, obs, u):
        """Any action."""
        return jnp.argmax(u)

    def observe(self, state, transitions, mask):
        return state

    def learn(self, state, batch, key):
        return state, {}
