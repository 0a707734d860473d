"""MiniGrid's rules in JAX, on boards that MiniGrid itself drew: the whole grid, compiled."""

import dataclasses
import functools
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt8

from surveyor.envs.stepping import SYMBOLS, Box, Discrete, Step, restarted
from surveyor.errors import SurveyorError
from surveyor.types import PRNG

EMPTY, DOOR, KEY, BALL, BOX, GOAL, LAVA, AGENT = 1, 4, 5, 6, 7, 8, 9, 10
FLOOR = 3
OPEN, CLOSED, LOCKED = 0, 1, 2
LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)
MOVES = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
"""Steps in x and y of an agent that faces right, down, left or up."""
NOTHING = np.array([EMPTY, 0, 0], np.uint8)
BOARDS = 1_000
"""Boards of a run, drawn from its seed; every episode begins on one of them."""

Cell = UInt8[Array, "3"]


class Drawn(NamedTuple):
    """Boards at the start of an episode."""

    cells: UInt8[Array, "boards x y 3"]
    place: Int[Array, "boards 2"]
    """Where the agent stands."""
    facing: Int[Array, " boards"]
    wanted: Int[Array, "boards 2"]
    """Kind and colour of what has to be picked up, or where the door is that has to be opened."""


class World(NamedTuple):
    """State of an episode."""

    cells: UInt8[Array, "x y 3"]
    place: Int[Array, "2"]
    facing: Int[Array, ""]
    wanted: Int[Array, "2"]
    carried: Cell
    time: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class Boards:
    """A MiniGrid environment whose episodes are played in JAX.

    The observation is MiniGrid's `FullyObsWrapper`: kind, colour and state of every place. Success
    earns 1 - 0.9 of the share of the time that was used, and ends an episode, as lava does.
    """

    name: str
    """MiniGrid's id."""
    width: int
    height: int
    max_steps: int
    aim: str
    """Success: `goal` to stand on it, `pick up` an object, or open a `door`."""

    @classmethod
    def of(cls, name: str) -> "Boards":
        """Return the environment with an id; raise `SurveyorError` if its rules are others."""
        grid = _minigrid(name)
        return cls(name, grid.width, grid.height, grid.max_steps, _aim(name, grid))

    @property
    def default_params(self) -> Drawn:
        """Boards of seed 0."""
        return self.seeded_params(0)

    def seeded_params(self, seed: int) -> Drawn:
        """Return the boards of a run with this seed."""
        return _drawn(self, seed)

    def action_space(self, params: Drawn) -> Discrete:
        """Return MiniGrid's seven actions; the last one, done, does nothing."""
        return Discrete(7)

    def observation_space(self, params: Drawn) -> Box:
        """Return the bounds of a board."""
        shape = (self.width, self.height, 3)
        return Box(0, np.broadcast_to(SYMBOLS, shape), shape, jnp.uint8)

    def reset(self, key: PRNG, params: Drawn) -> tuple[UInt8[Array, "x y 3"], World]:
        """Start on one of the boards."""
        number = jax.random.randint(key, (), 0, params.cells.shape[0])
        cells, place, facing, wanted = (each[number] for each in params)
        world = World(cells, place, facing, wanted, jnp.asarray(NOTHING), jnp.zeros((), jnp.int32))
        return self.observe(world), world

    def step(self, key: PRNG, state: World, action: Any, params: Drawn) -> Step:
        """Take one step in gymnax 1.x's convention."""
        world, reward, over = self.move(state, jnp.asarray(action))
        truncated, final = world.time >= self.max_steps, self.observe(world)
        first = self.reset(key, params)
        obs, state = restarted(over | truncated, first, (final, world))
        return obs, state, reward, over, truncated, {"final_observation": final}

    def observe(self, world: World) -> UInt8[Array, "x y 3"]:
        """Return the board with the agent on it."""
        agent = jnp.stack([jnp.int32(AGENT), jnp.int32(0), world.facing]).astype(jnp.uint8)
        return world.cells.at[world.place[0], world.place[1]].set(agent)

    def move(self, world: World, action: Int[Array, ""]) -> tuple[World, Array, Array]:
        """Return the world after an action, its reward, and whether the episode is over."""
        cells, place, facing, _, carried, time = world
        x, y = ahead = place + jnp.asarray(MOVES)[facing]
        front = cells[x, y]
        kind, state = front[0], front[2]
        hands_free, free = carried[0] == EMPTY, kind == EMPTY

        steps_on = free | _one_of(kind, FLOOR, GOAL, LAVA) | ((kind == DOOR) & (state == OPEN))
        walks = (action == FORWARD) & steps_on
        takes = (action == PICK_UP) & hands_free & _one_of(kind, KEY, BALL, BOX)
        drops = (action == DROP) & ~hands_free & free
        toggles = action == TOGGLE

        nothing = jnp.asarray(NOTHING)
        left = jnp.where(takes | (toggles & (kind == BOX)), nothing, front)
        left = jnp.where(drops, carried, left)
        fits = (carried[0] == KEY) & (carried[1] == front[1])
        turned = jnp.where(state == LOCKED, jnp.where(fits, OPEN, LOCKED), OPEN + CLOSED - state)
        turned = jnp.where(toggles & (kind == DOOR), turned, left[2])
        cells = cells.at[x, y].set(left.at[2].set(turned.astype(jnp.uint8)))
        carried = jnp.where(takes, front, jnp.where(drops, nothing, carried))
        facing = (facing - (action == LEFT) + (action == RIGHT)) % 4
        new = World(cells, jnp.where(walks, ahead, place), facing, world.wanted, carried, time + 1)
        done = (walks & (kind == GOAL)) | self._reached(new, takes, toggles)
        reward = jnp.where(done, 1 - 0.9 * (new.time / self.max_steps), 0.0)
        return new, reward, done | (walks & (kind == LAVA))

    def _reached(self, world: World, takes: Array, toggles: Array) -> Array:
        """Return whether what is wanted was picked up, or the door opened."""
        if self.aim == "pick up":
            return takes & jnp.all(world.carried[:2] == world.wanted)
        if self.aim == "door":
            x, y = world.wanted
            return toggles & (world.cells[x, y, 2] == OPEN)
        return jnp.zeros((), bool)


def _one_of(kind: Array, *kinds: int) -> Array:
    return functools.reduce(jnp.logical_or, (kind == each for each in kinds))


def _minigrid(name: str) -> Any:
    import gymnasium

    return gymnasium.make(name).unwrapped


def _aim(name: str, grid: Any) -> str:
    """Return what ends an episode with a reward; raise `SurveyorError` for other rules."""
    from minigrid.envs.blockedunlockpickup import BlockedUnlockPickupEnv
    from minigrid.envs.keycorridor import KeyCorridorEnv
    from minigrid.envs.unlock import UnlockEnv
    from minigrid.envs.unlockpickup import UnlockPickupEnv
    from minigrid.minigrid_env import MiniGridEnv

    aims = {
        MiniGridEnv.step: "goal",
        UnlockEnv.step: "door",
        UnlockPickupEnv.step: "pick up",
        KeyCorridorEnv.step: "pick up",
        BlockedUnlockPickupEnv.step: "pick up",
    }
    step = inspect.unwrap(type(grid).step)
    if step not in aims:
        raise SurveyorError(
            f"{name} has rules of its own, which are not compiled: leave --compiled out, "
            "--full-view shows the whole grid as well."
        )
    return aims[step]


@functools.lru_cache(maxsize=8)
def _drawn(boards: Boards, seed: int) -> Drawn:
    grid = _minigrid(boards.name)
    rows = [_row(boards, grid, seed * BOARDS + number) for number in range(BOARDS)]
    return Drawn(*(jnp.asarray(np.stack(column)) for column in zip(*rows, strict=True)))


def _row(boards: Boards, grid: Any, seed: int) -> tuple[Any, ...]:
    """Return one board as MiniGrid draws it from a seed."""
    grid.reset(seed=seed)
    wanted = (0, 0)
    if boards.aim == "pick up":
        wanted = grid.obj.encode()[:2]
    if boards.aim == "door":
        wanted = grid.door.cur_pos
    place = np.array(grid.agent_pos, np.int32)
    return grid.grid.encode(), place, np.int32(grid.agent_dir), np.array(wanted, np.int32)
