"""Uniform exploration: the policy that every other agent has to beat."""

import jax.numpy as jnp

from surveyor.agents.base import Agent


class Uniform(Agent):
    """Knows nothing and learns nothing: all Q values are equal, and ties are broken fairly.

    It solves a tree of size L with probability 2^-L an episode.
    """

    batch_size: int = 1
    recent: int = 0
    replay_capacity: int = 1
    gradient_steps: int = 0

    def init(self, spec, key):
        """No parameters; only the number of actions, as the shape of a row of zeros."""
        return jnp.zeros(spec.num_actions)

    def sample(self, state, key):
        return None

    def greedy(self, state):
        return None

    def q(self, state, index, obs):
        return jnp.broadcast_to(state, (*obs.shape, *state.shape))

    def observe(self, state, transitions, mask):
        return state

    def learn(self, state, batch, key):
        return state, {}
