"""Functional environments, with the calling convention of gymnax 1.x."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt8

from surveyor.envs import families
from surveyor.errors import SurveyorError
from surveyor.types import PRNG, EnvSpec

Scalar = Int[Array, ""]
Flag = Bool[Array, ""]
Info = dict[str, PyTree]


class Params(eqx.Module):
    """The part of an environment that its seed decides."""

    mapping: UInt8[Array, "..."]
    """In each state, the action that means the good move."""


class Layout(NamedTuple):
    """Places of states in a map of what an agent believes about them."""

    states: Int[np.ndarray, " n"]
    """States that can be reached and where an action matters; a subset in a large problem."""
    rows: Int[np.ndarray, " n"]
    columns: Int[np.ndarray, " n"]
    path: Int[np.ndarray, " m"]
    """States of the optimal path, in order."""
    moves: tuple[str, str]
    """Names of the good move and of the other one."""


class Environment(eqx.Module):
    """A deterministic exploration problem of a given size, with a hidden meaning of its actions.

    The environment itself is static; `Params` hold what depends on the seed and are passed to
    `reset` and `step`, so that one compiled program serves every seed.
    """

    size: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name for `surveyor.envs.make`, such as `Tree-100`."""

    @property
    @abc.abstractmethod
    def spec(self) -> EnvSpec:
        """Observation and action spaces, and the horizon."""

    @property
    def horizon(self) -> int:
        """Largest number of steps in an episode."""
        return self.spec.horizon

    @property
    @abc.abstractmethod
    def optimal_return(self) -> float:
        """Undiscounted return of the optimal policy."""

    @property
    @abc.abstractmethod
    def default_episodes(self) -> int:
        """Default training budget in episodes."""

    @abc.abstractmethod
    def params(self, seed: int) -> Params:
        """Return the hidden action mapping of this seed."""

    @property
    def default_params(self) -> Params:
        """Mapping of seed 0."""
        return self.params(0)

    def layout(self, side: int) -> Layout | None:
        """Return a map with at most `side` states along each side, or None if there is none."""
        return None

    def place(self, states: Int[np.ndarray, "*n"]) -> tuple[np.ndarray, np.ndarray]:
        """Return row and column of states in the map."""
        return np.zeros_like(states), states

    def good(self, params: Params, states: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """Return the action that means the good move in each state."""
        return params.mapping[states].astype(jnp.int32)

    def reset_env(self, key: PRNG, params: Params) -> tuple[Scalar, PyTree]:
        """Return the first observation and state of an episode, both 0 unless overridden."""
        start = jnp.zeros((), jnp.int32)
        return start, start

    @abc.abstractmethod
    def step_env(
        self, key: PRNG, state: PyTree, action: Scalar, params: Params
    ) -> tuple[Scalar, PyTree, Float[Array, ""], Flag, Info]:
        """Step without a reset; return observation, state, reward, terminated, info."""

    def reset(self, key: PRNG, params: Params | None = None) -> tuple[Scalar, PyTree]:
        """Start an episode; return its observation and state."""
        return self.reset_env(key, self.default_params if params is None else params)

    def step(
        self, key: PRNG, state: PyTree, action: Scalar, params: Params | None = None
    ) -> tuple[Scalar, PyTree, Float[Array, ""], Flag, Flag, Info]:
        """Take one step; at an episode's end, return the start of the next episode.

        Return `(obs, state, reward, terminated, truncated, info)`; the observation before any
        reset is `info["final_observation"]`.
        """
        params = self.default_params if params is None else params
        step_key, reset_key = jax.random.split(key)
        final, state, reward, terminated, info = self.step_env(step_key, state, action, params)
        first, first_state = self.reset_env(reset_key, params)
        obs = jnp.where(terminated, first, final)
        state = jax.tree.map(lambda new, old: jnp.where(terminated, new, old), first_state, state)
        info = {**info, "final_observation": final}
        return obs, state, reward, terminated, jnp.zeros_like(terminated), info


def make(name: str, seed: int = 0) -> tuple[Environment, Params]:
    """Return an environment that is learnt by episodes, and its hidden action mapping.

    **Arguments:**

    - `name`: such as `Tree-100`, `TiedTree-100` or `Chain-40`.
    - `seed`: seed of the mapping, which stays the same over episodes, in training and evaluation.
    """
    env = named(name)
    return env, env.params(seed)


def named(name: str) -> Environment:
    """Return the environment of a name; raise `SurveyorError` if it is not learnt by episodes."""
    family = families.find(name)
    env = family.make(family.canonical(name), None)
    if not isinstance(env, Environment):
        wanted = f"environment '{name}' that is learnt by episodes"
        raise SurveyorError(f"There is no {wanted}; `surveyor list envs` lists them.")
    return env
