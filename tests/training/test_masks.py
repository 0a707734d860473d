"""Actions that an environment forbids are never taken, and never counted on."""

import dataclasses
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Array

import surveyor as sv
from surveyor import agents
from surveyor.errors import SurveyorError
from tests.common import VECTOR, batch, begun, compiled

NAMES = ("dqn", "bootdqn", "bdqn", "ube", "su", "su-plus")
QUICK = {"batch_size": 8, "warmup": 16, "envs": 1, "train_every": 2, "gradient_steps": 1}
QUICK |= {"hidden": 8, "features": 12, "replay_capacity": 200, "ensemble": 1}


def small(name, problem="classic", **more):
    agent = agents.preset(name, problem)
    known = {field.name for field in dataclasses.fields(agent)}
    return dataclasses.replace(agent, **{k: v for k, v in (QUICK | more).items() if k in known})


class Masked(gymnasium.Env):
    """Two of five actions are allowed, others at every step; the rest raise an error."""

    action_space = spaces.Discrete(5)

    def __init__(self, where="info", numbered=False):
        self.where = where
        inner = spaces.Discrete(7) if numbered else spaces.Box(-1, 1, (3,))
        mask = spaces.Box(0, 1, (5,), np.int8)
        both = spaces.Dict(observation=inner, action_mask=mask)
        self.observation_space = inner if where == "info" else both

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._see()

    def step(self, action):
        assert self.mask[action], "a forbidden action"
        self.time += 1
        obs, info = self._see()
        return obs, float(action), self.time == 4, self.time == 3 and action == 4, info

    def _see(self):
        self.mask = np.zeros(5, np.int8)
        self.mask[self.np_random.choice(5, 2, replace=False)] = 1
        space = self.observation_space
        if self.where == "info":
            space.seed(int(self.np_random.integers(1000)))
            return space.sample(), {"action_mask": self.mask}
        space["observation"].seed(int(self.np_random.integers(1000)))
        return {"observation": space["observation"].sample(), "action_mask": self.mask}, {}


@pytest.mark.parametrize("name", ["dqn", "su-plus", "uniform"])  # others act as SU+ does
def test_only_allowed_actions_are_taken_by_any_agent(name):
    run = sv.train(small(name), Masked, steps=60)
    assert run.runner.spec.masked
    assert len(sv.evaluate(run, 3).returns) == 3


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("where", ["info", "observation"])
def test_a_mask_is_found_in_info_or_in_the_observation_and_predict_keeps_to_it(where, numbered):
    agent = small("dqn", "numbered" if numbered else "classic", envs=2)
    run = sv.train(agent, lambda: Masked(where, numbered), steps=60)
    assert run.runner.spec.tabular == numbered
    env = Masked(where, numbered)
    obs, info = env.reset(seed=3)
    for _ in range(10):
        given = {"action_masks": info["action_mask"]} if where == "info" else {}
        for deterministic in (True, False):
            action, _ = run.predict(obs, deterministic=deterministic, **given)
            assert env.mask[action]
        obs, _, terminated, truncated, info = env.step(int(action))
        if terminated or truncated:
            obs, info = env.reset()
    if where == "info":
        with pytest.raises(SurveyorError, match="a mask in `info`: give it as action_masks"):
            run.predict(obs)


@pytest.mark.parametrize("where", ["info", "observation"])
@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_masks_of_vector_environments(mode, where):
    env = SyncVectorEnv([lambda: Masked(where)] * 2, autoreset_mode=AutoresetMode[mode])
    run = sv.train(small("dqn", envs=2), env, steps=80)
    assert run.runner.spec.masked
    replay = run.loop.replay
    flags = replay.flags[:40]
    assert np.all(replay.next_legal[:40].sum(-1)[flags == 0] == 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("problem", ["classic", "numbered"])
def test_targets_count_on_allowed_actions_only(name, problem):
    from tests.agents.test_contract import SPECS
    from tests.agents.test_contract import batch as drawn

    agent, spec = small(name, problem, target_every=1, foresight=0.0), SPECS[problem]
    state = begun(agent, spec)  # SU+ without foresight: one target is bounded by those of actions
    learn = compiled(agent.learn)
    data = batch(spec) if problem == "classic" else drawn(8, spec=spec)
    data = dataclasses.replace(data, terminated=jnp.zeros(8, bool).at[0].set(True))
    seen = jnp.ones(8, bool)
    state = compiled(agent.observe)(state, data, seen)  # SU+ bounds Q by the rewards it has seen
    for step in range(30):
        state, _ = learn(state, data, jax.random.key(step))

    def errors(legal):
        given = None if legal is None else jnp.broadcast_to(jnp.asarray(legal), (8, 3))
        masked = dataclasses.replace(data, next_legal=given)
        return np.asarray(learn(state, masked, jax.random.key(0))[1].errors)

    each = np.stack([errors(np.arange(3) == a) for a in range(3)])
    free = errors(None)
    assert np.all(np.isfinite(each))
    np.testing.assert_allclose(errors([True] * 3), free, rtol=1e-5)
    np.testing.assert_allclose(each[:, 0], free[0], rtol=1e-5)  # nothing follows the last step
    assert np.ptp(each[:, 1:], axis=0).max() > 1e-4  # what is allowed matters
    assert np.all(free <= each.max(axis=0) + 1e-5)
    assert np.all(free >= each.min(axis=0) - 1e-5)


def test_rewards_are_supposed_behind_allowed_actions_only():
    agent, data = small("su-plus", ensemble=3), batch(VECTOR)
    state = begun(agent)
    for action in (0, 0, 1):  # so that what is supposed differs, and the third is untried
        taken = dataclasses.replace(data, obs=data.next_obs, action=jnp.full(8, action))
        state = compiled(agent.observe)(state, taken, jnp.ones(8, bool))

    def targets(legal):
        given = jnp.broadcast_to(jnp.asarray(legal), (8, 3))
        return np.asarray(agent.targets(state, dataclasses.replace(data, next_legal=given)))[:, 1:]

    each = np.stack([targets(np.arange(3) == a) for a in range(3)])
    assert np.all(each[:, ~data.terminated].min(axis=(1, 2)) > 0)
    np.testing.assert_array_equal(each[:, data.terminated], 0.0)
    np.testing.assert_array_equal(targets([True, True, False]), each[:2].max(axis=0))
    np.testing.assert_array_equal(targets([True] * 3), each.max(axis=0))
    assert np.all(each[2] >= each[:2].max(axis=0))
    assert np.ptp(each[:2], axis=0).max() > 1e-4


class Seen(NamedTuple):
    board: Array
    action_mask: Array


class Space:
    def __init__(self, n=None):
        self.n = n


class Boards:
    """A functional environment that allows one action, the number on its board, out of four."""

    default_params, name = None, "Boards"

    def __init__(self, forbids_all=False):
        self.forbids_all = forbids_all

    def action_space(self, params):
        return Space(4)

    def observation_space(self, params):
        return Space()

    def reset(self, key, params):
        state = jax.random.randint(key, (), 0, 4), jnp.zeros((), jnp.int32)
        return self._see(state), state

    def step(self, key, state, action, params):
        wrong = action != state[0]
        after = jax.random.randint(key, (), 0, 4), state[1] + 1
        over = after[1] == 5
        first, fresh = self.reset(jax.random.fold_in(key, 1), params)
        pick = lambda new, old: jnp.where(over, new, old)  # noqa: E731
        seen, last = jax.tree.map(pick, first, self._see(after)), self._see(after)
        state = jax.tree.map(pick, fresh, after)
        reward = jnp.where(wrong, -1000.0, 1.0)
        return seen, state, reward, over, over & False, {"final_observation": last}

    def _see(self, state):
        mask = jnp.arange(4) == state[0]
        return Seen(jnp.full((2,), state[0] / 2), mask & (not self.forbids_all))


@pytest.mark.parametrize("name", ["dqn", "su-plus"])
def test_masks_are_kept_to_in_the_compiled_loop(name):
    run = sv.train(small(name, envs=4, train_every=4), Boards(), steps=400)
    assert run.result["return"] == 5.0
    assert sv.evaluate(run, 5).mean_return == 5.0
    for allowed in range(4):
        seen = Seen(np.full(2, allowed / 2), np.arange(4) == allowed)
        assert run.predict(seen)[0] == allowed


def test_a_mask_that_forbids_everything_is_said_in_one_sentence():
    class Stuck(Masked):
        def _see(self):
            obs, info = super()._see()
            self.mask[:] = self.time == 0
            return obs, info

    with pytest.raises(SurveyorError, match="action_mask of Stuck allows no action, so training"):
        sv.train(small("dqn"), Stuck, steps=60)
    with pytest.raises(SurveyorError, match="action_mask of Boards allows no action, so training"):
        sv.train(small("dqn", envs=4, train_every=4), Boards(forbids_all=True), steps=60)


class Ends(Masked):
    """Forbids everything after its last step, as many environments do; cut off at once."""

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        self.mask[:] = 0
        return obs, reward, False, True, info


def test_nobody_acts_after_the_end_so_its_mask_may_forbid_everything():
    run = sv.train(small("dqn"), Ends, steps=60)
    assert run.result["episodes"] == 60


class Nested(Masked):
    """A mask inside an inner part of the observation."""

    def __init__(self):
        super().__init__("observation")
        self.observation_space = spaces.Tuple((self.observation_space, spaces.Discrete(2)))

    def _see(self):
        whole, self.observation_space = self.observation_space, self.observation_space[0]
        obs, info = super()._see()
        self.observation_space = whole
        return (obs, 1), info


def test_a_mask_is_found_inside_other_parts_and_the_newest_frame_s_counts():
    run = sv.train(small("dqn"), Nested, steps=60)
    assert run.runner.spec.masked
    run = sv.train(small("dqn"), lambda: Masked("observation"), steps=60, frame_stack=2)
    masks = np.array([[1, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    assert run.predict({"observation": np.zeros((2, 3)), "action_mask": masks})[0] == 3


class Late(Masked):
    def reset(self, *, seed=None, options=None):
        obs, _ = super().reset(seed=seed)
        self.mask = np.ones(5)
        return obs, {}


class Gone(Masked):
    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, {}


@pytest.mark.parametrize(("env", "sentence"), [
    (Late, "Late gave an action_mask after a step, but none at its first reset"),
    (Gone, "Gone gave no action_mask, though there was one at its first reset"),
])  # fmt: skip
def test_masks_that_come_and_go_are_refused(env, sentence):
    with pytest.raises(SurveyorError, match=sentence):
        sv.train(small("uniform" if env is Late else "dqn"), env, steps=60)
