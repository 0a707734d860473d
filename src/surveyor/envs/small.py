"""Small problems in JAX that are hard to explore: numbered states, chance, and a lock of bits."""

import abc
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from surveyor.envs.base import Params
from surveyor.envs.stepping import Box, Discrete, Step, restarted
from surveyor.types import PRNG, HostArrays

LEFT, RIGHT = 0, 1
SIDES = (4, 8)
"""Sides of Gymnasium's two maps of FrozenLake."""
DIGITS = 3
"""Actions of a lock."""


class Outcomes(NamedTuple):
    """What may follow each action in each state."""

    chance: Float[HostArrays, "states actions n"]
    follows: Int[HostArrays, "states actions n"]
    reward: Float[HostArrays, "states actions n"]
    over: Bool[HostArrays, "states actions n"]


class Now(NamedTuple):
    """State of an episode."""

    state: Int[Array, ""]
    time: Int[Array, ""]


class Table(abc.ABC):
    """A problem with numbered states; subclasses say what follows what.

    An episode begins in state 0 and is cut off after `horizon` steps.
    """

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """Steps of an episode."""

    @abc.abstractmethod
    def outcomes(self) -> Outcomes:
        """Return what may follow each action in each state."""

    @property
    def default_params(self) -> Outcomes:
        """What follows what, with the chance of each outcome or one before it."""
        found = self.outcomes()
        below = np.cumsum(found.chance, axis=-1)
        below[..., -1] = 1.0  # whatever the sum was rounded to
        kinds = (jnp.float32, jnp.int32, jnp.float32, bool)
        arrays = (below, *found[1:])
        return Outcomes(*(jnp.asarray(a, kind) for a, kind in zip(arrays, kinds, strict=True)))

    @property
    def optimal_return(self) -> float:
        """Largest mean return within the horizon."""
        p, follows, reward, over = self.outcomes()
        value = np.zeros(len(p))
        for _ in range(self.horizon):
            value = np.max(np.sum(p * (reward + ~over * value[follows]), axis=-1), axis=-1)
        return float(value[0])

    def action_space(self, params: Outcomes) -> Discrete:
        """Return the actions."""
        return Discrete(params.reward.shape[1])

    def observation_space(self, params: Outcomes) -> Discrete:
        """Return the states."""
        return Discrete(params.reward.shape[0])

    def reset(self, key: PRNG, params: Outcomes) -> tuple[Int[Array, ""], Now]:
        """Start in state 0."""
        start = jnp.zeros((), jnp.int32)
        return start, Now(start, start)

    def step(self, key: PRNG, state: Now, action: Any, params: Outcomes) -> Step:
        """Take one step in gymnax 1.x's convention."""
        here = (state.state, action)
        outcome = jnp.sum(jax.random.uniform(key) >= params.chance[here])
        follows, reward, over = (x[here][outcome] for x in params[1:])
        last = Now(follows, state.time + 1)
        cut_off = ~over & (last.time >= self.horizon)
        obs, state = restarted(over | cut_off, self.reset(key, params), (follows, last))
        return obs, state, reward, over, cut_off, {"final_observation": follows}


@dataclasses.dataclass(frozen=True)
class RiverSwim(Table):
    """Swim against the current to the far end, or rest at the near one.

    Probabilities and rewards of Osband et al. (2013): going left always succeeds, going right
    seldom. Right at the far end earns 1, left at the near end 0.005. Episodes have 10 steps for
    each of the states.
    """

    size: int

    @property
    def name(self) -> str:
        """Name of the environment."""
        return f"RiverSwim-{self.size}"

    @property
    def horizon(self) -> int:
        return 10 * self.size

    def outcomes(self) -> Outcomes:
        """Return the chances to move to the left, not at all, and to the right."""
        states = np.arange(self.size)
        shift = np.array([-1, 0, 1])
        chance = np.zeros((self.size, 2, 3))
        chance[:, LEFT] = (1.0, 0.0, 0.0)
        chance[:, RIGHT] = (0.05, 0.6, 0.35)
        chance[0, RIGHT], chance[-1, RIGHT] = (0.0, 0.4, 0.6), (0.4, 0.6, 0.0)
        follows = np.clip(states[:, None] + shift, 0, self.size - 1)
        follows = np.broadcast_to(follows[:, None], chance.shape)
        reward = np.zeros(chance.shape)
        reward[0, LEFT], reward[-1, RIGHT] = 0.005, 1.0
        return Outcomes(chance, follows, reward, np.zeros(chance.shape, bool))


@dataclasses.dataclass(frozen=True)
class FrozenLake(Table):
    """Gymnasium's FrozenLake on one of its maps, with its time limits."""

    side: int
    slippery: bool = True

    @property
    def name(self) -> str:
        """Name of the environment."""
        return f"FrozenLake-{self.side}x{self.side}" + "-firm" * (not self.slippery)

    @property
    def horizon(self) -> int:
        return 100 if self.side == SIDES[0] else 200

    def outcomes(self) -> Outcomes:
        """Return Gymnasium's own table."""
        from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

        lake: Any = FrozenLakeEnv(map_name=f"{self.side}x{self.side}", is_slippery=self.slippery)
        rows = [[lake.P[state][action] for action in range(4)] for state in range(self.side**2)]
        chance, follows, reward, over = np.moveaxis(_filled(rows), -1, 0)
        return Outcomes(chance, follows.astype(int), reward, over.astype(bool))


def _filled(rows: list[list[list[tuple[Any, ...]]]]) -> np.ndarray:
    """Return lists of outcomes as one array; those that are missing have no chance."""
    longest = max(len(outcomes) for row in rows for outcomes in row)
    none = [(0.0, 0.0, 0.0, 0.0)]
    filled = [[outcomes + none * (longest - len(outcomes)) for outcomes in row] for row in rows]
    return np.array(filled, float)


class Dial(NamedTuple):
    """State of a lock."""

    place: Int[Array, ""]
    """Digits that were entered."""
    jammed: Bool[Array, ""]


@dataclasses.dataclass(frozen=True)
class Lock:
    """A combination lock of N digits with three values each, drawn from the run's seed.

    A wrong digit jams the lock until the end of the episode, N steps; opening it earns 1. The
    observation is the number of digits so far in binary, and whether the lock is jammed.
    """

    size: int
    optimal_return = 1.0

    @property
    def name(self) -> str:
        """Name of the environment."""
        return f"Lock-{self.size}"

    @property
    def bits(self) -> int:
        """Bits of the number of digits so far."""
        return self.size.bit_length()

    @property
    def default_params(self) -> Params:
        """Combination of seed 0."""
        return self.seeded_params(0)

    def seeded_params(self, seed: int) -> Params:
        """Return the combination of a run with this seed."""
        digits = np.random.default_rng(seed).integers(DIGITS, size=self.size)
        return Params(jnp.asarray(digits, jnp.uint8))

    def action_space(self, params: Params) -> Discrete:
        """Return the values of a digit."""
        return Discrete(DIGITS)

    def observation_space(self, params: Params) -> Box:
        """Return the bounds of an observation."""
        return Box(0, 1, (self.bits + 1,), jnp.bool_)

    def reset(self, key: PRNG, params: Params) -> tuple[Bool[Array, " bits"], Dial]:
        """Start with no digit entered."""
        dial = Dial(jnp.zeros((), jnp.int32), jnp.zeros((), bool))
        return self.observe(dial), dial

    def step(self, key: PRNG, state: Dial, action: Any, params: Params) -> Step:
        """Take one step in gymnax 1.x's convention."""
        last = Dial(state.place + 1, state.jammed | (action != params.mapping[state.place]))
        over, final = last.place == self.size, self.observe(last)
        reward = over & ~last.jammed
        obs, state = restarted(over, self.reset(key, params), (final, last))
        return obs, state, reward, over, jnp.zeros_like(over), {"final_observation": final}

    def observe(self, dial: Dial) -> Bool[Array, " bits"]:
        """Return the number of digits in binary, and whether the lock is jammed."""
        bits = (dial.place >> jnp.arange(self.bits)) & 1
        return jnp.append(bits == 1, dial.jammed)
