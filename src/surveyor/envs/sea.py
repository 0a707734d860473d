"""DeepSea of bsuite (Osband et al. 2020) with its pictures as observations, in JAX."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from surveyor.envs.base import Params
from surveyor.envs.chain import MOVE_COST
from surveyor.envs.stepping import Box, Discrete, Step, restarted
from surveyor.types import PRNG


class Place(NamedTuple):
    """Where the agent is; the row below the last one ends an episode."""

    row: Int[Array, ""]
    column: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class DeepSea:
    """An N × N grid; the agent falls one row a step and moves left or right.

    RIGHT costs 0.01/N, LEFT nothing; RIGHT in the right-most column earns one. Which action means
    RIGHT is drawn for every place from the run's seed. The observation is a picture of the grid
    that is True where the agent is, and False everywhere after the last step. In the stochastic
    version RIGHT does not move the agent with probability 1/N, and the last step adds normal noise
    to the reward in the first and in the last column.
    """

    size: int
    """Number N of rows and columns."""
    stochastic: bool = False

    @property
    def name(self) -> str:
        """Name of the environment."""
        return f"DeepSea-{self.size}" + self.stochastic * "-stochastic"

    @property
    def optimal_return(self) -> float:
        """Mean return of going right everywhere, as bsuite states it."""
        success = (1 - 1 / self.size) ** (self.size - 1) if self.stochastic else 1.0
        return success - MOVE_COST

    @property
    def default_params(self) -> Params:
        """Mapping of seed 0."""
        return self.seeded_params(0)

    def seeded_params(self, seed: int) -> Params:
        """Return the action mapping that bsuite draws for `mapping_seed=seed`."""
        draws = np.random.RandomState(seed).binomial(1, 0.5, (self.size, self.size))
        return Params(jnp.asarray(draws, jnp.uint8))

    def action_space(self, params: Params) -> Discrete:
        """Return the two actions."""
        return Discrete(2)

    def observation_space(self, params: Params) -> Box:
        """Return the bounds of a picture."""
        return Box(0, 1, (self.size, self.size), jnp.bool_)

    def reset(self, key: PRNG, params: Params) -> tuple[Bool[Array, "rows columns"], Place]:
        """Start at the top left."""
        start = Place(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
        return self.observe(start), start

    def step(self, key: PRNG, state: Place, action: Any, params: Params) -> Step:
        """Take one step in gymnax 1.x's convention."""
        move_key, noise_key = jax.random.split(key)
        u, noise = jax.random.uniform(move_key), jax.random.normal(noise_key)
        last, reward = self.move(state, action, params, u, noise)
        over, final = last.row == self.size, self.observe(last)
        obs, state = restarted(over, self.reset(key, params), (final, last))
        return obs, state, reward, over, jnp.zeros_like(over), {"final_observation": final}

    def move(
        self,
        place: Place,
        action: Int[Array, ""],
        params: Params,
        u: Float[Array, ""],
        noise: Float[Array, ""],
    ) -> tuple[Place, Float[Array, ""]]:
        """Return the next place and the reward, given a uniform and a normal random number."""
        row, column = place
        first, last = column == 0, column == self.size - 1
        right = action == params.mapping[row, column]
        reward = jnp.where(right, jnp.float32(-MOVE_COST / self.size), 0.0) + (right & last)
        moved = jnp.minimum(column + 1, self.size - 1)
        if self.stochastic:
            moved = jnp.where(u > 1 / self.size, moved, column)
            reward += jnp.where((row == self.size - 1) & (first | last), noise, 0.0)
        column = jnp.where(right, moved, jnp.maximum(column - 1, 0))
        return Place(row + 1, column), reward

    def bad(self, place: Place, action: Any, params: Params) -> Bool[Array, ""]:
        """Return whether an action leaves the optimal path, as bsuite counts it."""
        wrong = action != params.mapping[place.row, place.column]
        return wrong & (place.row == place.column)

    def observe(self, place: Place) -> Bool[Array, "rows columns"]:
        """Return the picture of a place."""
        rows, columns = jnp.arange(self.size)[:, None], jnp.arange(self.size)
        return (rows == place.row) & (columns == place.column)
