"""Functional environments, with the calling convention of gymnax 1.x."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, UInt8

from surveyor.types import EnvSpec

Step = tuple[
    Int[Array, ""], PyTree, Float[Array, ""], Bool[Array, ""], Bool[Array, ""], dict[str, PyTree]
]


class Params(eqx.Module):
    """What the environment's seed decides: for each state, the action that means the good move."""

    mapping: UInt8[Array, "..."]


class Layout(NamedTuple):
    """Where states are in a picture of what an agent believes about them."""

    states: Int[np.ndarray, " n"]
    """Those that can be reached and where an action matters; of a large problem, some of them."""
    rows: Int[np.ndarray, " n"]
    columns: Int[np.ndarray, " n"]
    path: Int[np.ndarray, " m"]
    """All states of the optimal path, in order."""
    moves: tuple[str, str]
    """What the good action does, and what the other one does."""


class Environment(eqx.Module):
    """A deterministic exploration problem of a given size, with a hidden meaning of its actions.

    The environment itself is static; what depends on the seed is in `Params` and is passed to
    `reset` and `step`, so that one compiled program serves every seed.
    """

    size: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name that `surveyor.envs.make` knows it by, such as `Tree-100`."""

    @property
    @abc.abstractmethod
    def spec(self) -> EnvSpec:
        """The observation and action spaces, and the horizon."""

    @property
    def horizon(self) -> int:
        """The largest number of steps in an episode."""
        return self.spec.horizon

    @property
    @abc.abstractmethod
    def optimal_return(self) -> float:
        """The undiscounted return of the optimal policy."""

    @property
    @abc.abstractmethod
    def default_episodes(self) -> int:
        """How many training episodes to allow when the user does not say."""

    @abc.abstractmethod
    def params(self, seed: int) -> Params:
        """The hidden action mapping of this seed."""

    @property
    def default_params(self) -> Params:
        """The mapping of seed 0."""
        return self.params(0)

    def layout(self, side: int) -> Layout | None:
        """A picture of the problem with sides of at most so many states, if there is one."""
        return None

    def place(self, states: Int[np.ndarray, "*n"]) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of states in that picture."""
        return np.zeros_like(states), states

    def good(self, params: Params, states: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """In each state the action that means the good move."""
        return params.mapping[states].astype(jnp.int32)

    @abc.abstractmethod
    def reset_env(self, key: Key[Array, ""], params: Params) -> tuple[Int[Array, ""], PyTree]:
        """First observation and state of an episode."""

    @abc.abstractmethod
    def step_env(
        self, key: Key[Array, ""], state: PyTree, action: Int[Array, ""], params: Params
    ) -> tuple[Int[Array, ""], PyTree, Float[Array, ""], Bool[Array, ""], dict[str, PyTree]]:
        """One step, without a reset: observation, state, reward, terminated, info."""

    def reset(
        self, key: Key[Array, ""], params: Params | None = None
    ) -> tuple[Int[Array, ""], PyTree]:
        """Start an episode; returns the observation and the state."""
        return self.reset_env(key, self.default_params if params is None else params)

    def step(
        self,
        key: Key[Array, ""],
        state: PyTree,
        action: Int[Array, ""],
        params: Params | None = None,
    ) -> Step:
        """One step; at an episode's end, observation and state are those of the next episode.

        Returns `(obs, state, reward, terminated, truncated, info)`; the observation before any
        reset is `info["final_observation"]`.
        """
        params = self.default_params if params is None else params
        step_key, reset_key = jax.random.split(key)
        final, state, reward, terminated, info = self.step_env(step_key, state, action, params)
        truncated = jnp.zeros_like(terminated)
        first, first_state = self.reset_env(reset_key, params)
        obs = jnp.where(terminated, first, final)
        state = jax.tree.map(lambda new, old: jnp.where(terminated, new, old), first_state, state)
        return obs, state, reward, terminated, truncated, {**info, "final_observation": final}
