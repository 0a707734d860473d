"""The chain of Osband et al. (2018) in the paper's appendix C: DeepSea of bsuite."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from surveyor.envs.base import Environment, Layout, Params
from surveyor.envs.paper_problems import chain_episodes, chain_states
from surveyor.types import EnvSpec

MOVE_COST = 0.01
"""Cost of an episode of moves to the right."""


class Chain(Environment):
    """An L × L grid; the agent falls one row a step and moves left or right.

    RIGHT costs 0.01/L, LEFT nothing; RIGHT in the right-most column earns one. An episode is
    L steps, and the only policy with a positive return goes right at every one of them. The
    observation is `row * L + column`; the last one, L², is the sea floor below the grid.
    """

    size: int = eqx.field(static=True)
    """Number L of rows and columns."""

    @property
    def name(self):
        return f"Chain-{self.size}"

    @property
    def spec(self):
        return EnvSpec(num_states=chain_states(self.size), num_actions=2, horizon=self.size)

    @property
    def optimal_return(self):
        return 1.0 - MOVE_COST

    @property
    def default_episodes(self):
        return chain_episodes(self.size)

    def params(self, seed):
        # Draw as DeepSea(size, mapping_seed=seed) of bsuite does.
        draws = np.random.RandomState(seed).binomial(1, 0.5, (self.size, self.size))
        return Params(jnp.asarray(draws.ravel(), jnp.uint8))

    def layout(self, side):
        line = np.arange(0, self.size, -(-self.size // side))
        rows, columns = (x.ravel() for x in np.meshgrid(line, line, indexing="ij"))
        states = (rows * self.size + columns)[columns <= rows]
        path = np.arange(self.size) * (self.size + 1)
        return Layout(states, *self.place(states), path, ("RIGHT", "LEFT"))

    def place(self, states):
        return np.divmod(states, self.size)

    def step_env(self, key, state, action, params):
        column = state % self.size
        right = action == self.good(params, state)
        reward = jnp.where(right, jnp.float32(-MOVE_COST / self.size), 0.0)
        reward = reward + (right & (column == self.size - 1))
        sideways = jnp.where(right, column < self.size - 1, -(column > 0).astype(jnp.int32))
        terminated = state >= self.size * (self.size - 1)
        state = jnp.where(terminated, self.size**2, state + self.size + sideways)
        return state, state, reward, terminated, {}
