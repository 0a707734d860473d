"""A family of environments of one's own, in JAX: `Corridor-<L>`, with a reward at its far end.

    python examples/corridor_family.py

Importing this module registers the family: `sv.train("dqn", "Corridor-20")` then works by name.
"""

import re

import jax
import jax.numpy as jnp

import surveyor as sv
from surveyor.envs.functional import Functional


class Spaces:
    """A discrete space of n values, in the manner of gymnax."""

    def __init__(self, n: int):
        self.n = n


class Corridor:
    """Walk left or right from the start; the right end pays 1, and 4L steps are the limit."""

    default_params = None

    def __init__(self, length: int):
        self.name, self.length = f"Corridor-{length}", length

    def action_space(self, params):
        """Return the two actions."""
        return Spaces(2)

    def observation_space(self, params):
        """Return nothing of use: an observation is a one-hot vector."""
        return None

    def reset(self, key, params):
        """Start at the left end."""
        state = (jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
        return self._observe(state), state

    def step(self, key, state, action, params):
        """Take one step; a new episode begins where one ends."""
        place, time = jnp.clip(state[0] + 2 * action - 1, 0, self.length - 1), state[1] + 1
        terminated = place == self.length - 1
        truncated = (time >= 4 * self.length) & ~terminated
        last = (place, time)
        first_obs, first = self.reset(key, params)
        over = terminated | truncated
        state = jax.tree.map(lambda new, old: jnp.where(over, new, old), first, last)
        obs = jnp.where(over, first_obs, self._observe(last))
        info = {"final_observation": self._observe(last)}
        return obs, state, terminated.astype(jnp.float32), terminated, truncated, info

    def _observe(self, state):
        return jax.nn.one_hot(state[0], self.length)


def make(name: str, protocol: str | None = None) -> Functional:
    """Return the corridor of this name."""
    return Functional.wrap(Corridor(int(name.rpartition("-")[2])), name=name)


sv.envs.register(
    sv.envs.Family(
        name="Corridor",
        usage="Corridor-<L>",
        summary="A corridor of L places with a reward at its far end.",
        matches=lambda name: re.fullmatch(r"Corridor-[1-9][0-9]*", name) is not None,
        make=make,
        default_budget=lambda name: 20_000,
    )
)

if __name__ == "__main__":
    run = sv.train("dqn", "Corridor-10", steps=20_000)
    print(f"Corridor-10: mean return {run.result['return']:.2f}")
