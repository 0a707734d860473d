"""MiniGrid's rules in JAX, with MiniGrid itself as the oracle."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401  registers its grids
import numpy as np
import pytest
from minigrid.wrappers import FullyObsWrapper

from surveyor.envs import boards, families
from surveyor.envs.boards import Boards, World
from surveyor.errors import SurveyorError

PLAIN = ("Empty-8x8", "DoorKey-6x6", "MultiRoom-N2-S4", "LavaCrossingS9N1")
RARE = ("KeyCorridorS3R1", "UnlockPickup", "BlockedUnlockPickup")
"""Not solved by chance within some episodes."""
AIMS = ("KeyCorridorS3R1", "Unlock", "UnlockPickup", "BlockedUnlockPickup")


@pytest.fixture(autouse=True)
def few_boards(monkeypatch):
    monkeypatch.setattr(boards, "BOARDS", 12)
    boards._drawn.cache_clear()
    yield
    boards._drawn.cache_clear()


def begun(env: Boards, number: int) -> World:
    cells, place, facing, wanted = (each[number] for each in env.seeded_params(0))
    return World(cells, place, facing, wanted, jnp.asarray(boards.NOTHING), jnp.int32(0))


def purposeful(grid: Any, rng: np.random.Generator) -> int:
    """Return an action that more often than not has an effect, so that episodes succeed."""
    front = grid.grid.get(*grid.front_pos)
    useful = {"key": 3, "ball": 3, "box": 3, "door": 5, "goal": 2, "lava": 2}
    if front is not None and front.type in useful and rng.random() < 0.5:
        return useful[front.type] if not getattr(front, "is_open", False) else 2
    return int(rng.choice(7, p=[0.15, 0.15, 0.45, 0.1, 0.05, 0.07, 0.03]))


@pytest.mark.parametrize("grid", [*PLAIN, *AIMS])
def test_step_by_step_the_same_as_minigrid(grid):
    env = Boards.of(f"MiniGrid-{grid}-v0")
    oracle: Any = FullyObsWrapper(gymnasium.make(env.name))

    @jax.jit
    def replayed(world, actions):
        def step(world, action):
            new, reward, over = env.move(world, action)
            return new, (env.observe(new), reward, over, new.time >= env.max_steps)

        return env.observe(world), jax.lax.scan(step, world, actions)[1]

    rng, ends, effects = np.random.default_rng(1), set(), set()
    for number in range(12):
        seen = [oracle.reset(seed=number)[0]["image"]]
        actions, rest = np.zeros(env.max_steps, np.int32), []
        while not rest or not any(rest[-1][1:]):
            actions[len(rest)] = action = purposeful(oracle.unwrapped, rng)
            before = oracle.unwrapped.grid.encode()
            obs, *outcome, _ = oracle.step(action)
            seen.append(obs["image"])
            rest.append(outcome)
            if not np.array_equal(before, oracle.unwrapped.grid.encode()):
                effects.add(action)
        first, (obs, reward, over, late) = replayed(begun(env, number), actions)
        count = len(rest)
        np.testing.assert_array_equal([first, *obs[:count]], seen)
        expected, terminated, truncated = np.array(rest, float).T
        np.testing.assert_allclose(reward[:count], expected, atol=1e-6)
        np.testing.assert_array_equal(over[:count], terminated)
        np.testing.assert_array_equal(late[:count], truncated)
        ends.add((bool(terminated[-1]), bool(expected[-1] > 0)))
    assert (True, True) in ends or grid in RARE
    if grid in AIMS:
        assert effects >= {3, 4, 5}  # picked up, dropped, toggled


def test_a_locked_door_needs_the_key_of_its_colour_and_opening_it_succeeds():
    env = Boards.of("MiniGrid-Unlock-v0")
    world = begun(env, 0)
    x, y = (int(each) for each in world.wanted)
    assert world.cells[x, y].tolist()[::2] == [boards.DOOR, boards.LOCKED]
    colour = int(world.cells[x, y, 1])
    world = world._replace(place=jnp.array([x - 1, y]), facing=jnp.int32(0))
    toggle = jnp.int32(boards.TOGGLE)
    for carried, opens in (((boards.KEY, (colour + 1) % 6, 0), False), (boards.NOTHING, False)):
        new, reward, over = env.move(world._replace(carried=jnp.array(carried, jnp.uint8)), toggle)
        assert (bool(over), float(reward)) == (opens, 0.0)
    key = jnp.array((boards.KEY, colour, 0), jnp.uint8)
    new, reward, over = env.move(world._replace(carried=key), toggle)
    assert bool(over)
    assert float(reward) == pytest.approx(1 - 0.9 / 288)
    assert int(new.cells[x, y, 2]) == boards.OPEN


def test_the_wrong_object_is_no_success():
    env = Boards.of("MiniGrid-UnlockPickup-v0")
    world = begun(env, 0)
    key = np.argwhere(np.array(world.cells)[..., 0] == boards.KEY)[0]
    cells = world.cells.at[tuple(key)].set(jnp.array(boards.NOTHING))
    place = jnp.array([1, 1])
    for kind, wins in ((boards.KEY, False), (int(world.wanted[0]), True)):
        thing = jnp.array([kind, int(world.wanted[1]), 0], jnp.uint8)
        now = world._replace(cells=cells.at[2, 1].set(thing), place=place, facing=jnp.int32(0))
        _, reward, over = env.move(now, jnp.int32(boards.PICK_UP))
        assert (bool(over), float(reward) > 0) == (wins, wins)


def test_boards_follow_the_seed_and_every_one_is_used():
    env = Boards.of("MiniGrid-DoorKey-6x6-v0")
    first, again, other = (env.seeded_params(seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.cells, again.cells)
    assert not np.array_equal(first.cells, other.cells)
    keys = jax.random.split(jax.random.key(0), 200)
    seen, _ = jax.vmap(lambda key: env.reset(key, first))(keys)
    assert len(np.unique(np.array(seen), axis=0)) == len(
        np.unique(
            np.array(jax.vmap(lambda *each: env.observe(World(*each, boards.NOTHING, 0)))(*first)),
            axis=0,
        )
    )


def test_the_protocol_of_the_family():
    name = "MiniGrid-DoorKey-5x5-v0"
    env: Any = families.find(name).make(name, "compiled")
    assert env.spec.shape == (5, 5, 3)
    assert env.spec.codes == (11, 6, 4)
    assert env.spec.num_actions == 7
    assert env.by_seed
    with pytest.raises(SurveyorError, match="rules of its own, which are not compiled"):
        families.find(name).make("MiniGrid-Dynamic-Obstacles-5x5-v0", "compiled")
    with pytest.raises(SurveyorError, match="rules of its own"):
        families.find(name).make("BabyAI-GoToRedBall-v0", "compiled")
