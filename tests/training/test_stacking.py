"""Frames are stacked for any image environment, and stored once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import Env, spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import surveyor as sv
from surveyor.cli import main
from surveyor.envs.functional import Functional
from surveyor.envs.host import GymnasiumEnvs
from surveyor.envs.stacking import StackedEnvs
from surveyor.errors import SurveyorError
from surveyor.models.torsos import Torso
from surveyor.types import EnvSpec, stacked

QUICK = {"batch_size": 8, "warmup": 20, "envs": 2, "train_every": 4, "gradient_steps": 1}
QUICK |= {"hidden": 8, "replay_capacity": 300}


class Film(Env):
    """Pictures full of the number of their step; episodes of five, or of three that are cut off."""

    observation_space = spaces.Box(0, 255, (7, 7, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.time, self.cut = 1, seed != 0 and bool((seed or 0) % 2)
        return self._see(), {}

    def step(self, action):
        self.time += 1
        return self._see(), 1.0, not self.cut and self.time == 6, self.cut and self.time == 4, {}

    def _see(self):
        return np.full((7, 7, 3), 10 * self.time, np.uint8)


def newest(obs):
    return np.asarray(obs)[..., 0, 0, 0].tolist()


def test_an_episode_begins_with_zeros_and_the_last_stack_is_kept_apart():
    class Long(Film):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=0)

    envs = StackedEnvs(GymnasiumEnvs("film", Long, 1), 3)
    assert envs.spec.shape == (3, 7, 7, 3)
    assert newest(envs.begin(0)) == [[0, 0, 10]]
    seen = [envs.step(np.array([0])) for _ in range(6)]
    assert [newest(step.obs)[0] for step in seen[:5]] == [
        [0, 10, 20], [10, 20, 30], [20, 30, 40], [30, 40, 50], [0, 0, 10]
    ]  # fmt: skip
    assert newest(seen[4].final) == [[40, 50, 60]]


@pytest.mark.parametrize("kind", ["function", "SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_the_replay_stacks_what_was_seen(kind):
    env = Film
    if kind != "function":
        env = SyncVectorEnv([Film, Film], autoreset_mode=AutoresetMode[kind])
    run = sv.train(sv.DQN(**QUICK), env, steps=100, frame_stack=3)
    replay = run.loop.replay
    assert replay.obs.shape == (150, 2, 7, 7, 3)  # each frame once
    assert replay.next_obs is None
    batch = replay.sample(np.linspace(0, 0.999, 200))
    whole = {(0, 0, 10), (0, 10, 20), (10, 20, 30), (20, 30, 40), (30, 40, 50)}
    assert {tuple(each) for each in newest(batch.obs)} <= whole
    for before, after, over in zip(
        newest(batch.obs), newest(batch.next_obs), batch.terminated, strict=True
    ):
        assert over or after == [*before[1:], before[-1] + 10]


def test_a_stacked_run_resumes_to_the_same_bits(tmp_path):
    whole = sv.train(sv.DQN(**QUICK), Film, steps=300, frame_stack=4)
    first = sv.train(sv.DQN(**QUICK), Film, steps=300, frame_stack=4, out=tmp_path, report=_stop)
    assert not first.finished
    again = sv.resume(first.folder.path, env=Film)
    assert again.config.frame_stack == 4
    for a, b in zip(jax.tree.leaves(whole.loop), jax.tree.leaves(again.loop), strict=True):
        np.testing.assert_array_equal(a, b)
    frames = np.stack([np.full((7, 7, 3), 10 * t, np.uint8) for t in range(1, 5)])
    assert again.predict(frames)[0] in (0, 1)
    with pytest.raises(SurveyorError, match=r"are stacks of 4 frames, so of shape \(4, 7, 7, 3\)"):
        again.predict(frames[0])


def _stop(run):
    import os
    import signal

    if run.progress >= 100:
        os.kill(os.getpid(), signal.SIGINT)


class Space:
    def __init__(self, n=None):
        self.n = n


class CompiledFilm:
    """A functional environment that shows the film; its episodes always have five steps."""

    default_params, name = None, "CompiledFilm"

    def action_space(self, params):
        return Space(2)

    def observation_space(self, params):
        return Space()

    def reset(self, key, params):
        return self._see(jnp.int32(1)), jnp.int32(1)

    def step(self, key, state, action, params):
        after = state + 1
        over = after == 6
        new = jnp.where(over, 1, after)
        info = {"final_observation": self._see(after)}
        return self._see(new), new, jnp.float32(1), over, over & False, info

    def _see(self, time):
        return jnp.full((7, 7, 3), 10 * time, jnp.uint8)


def test_frames_are_stacked_in_the_compiled_loop_too(tmp_path):
    env = Functional.wrap(CompiledFilm()).stacked(3)
    obs, state = env.reset(jax.random.key(0))
    seen, finals = [newest(obs)], []
    for _ in range(6):
        obs, state, *_, final = env.step(jax.random.key(1), state, jnp.int32(0))
        seen.append(newest(obs))
        finals.append(newest(final))
    assert seen[:4] == [[0, 0, 10], [0, 10, 20], [10, 20, 30], [20, 30, 40]]
    assert (finals[4], seen[5]) == ([40, 50, 60], [0, 0, 10])
    run = sv.train(sv.DQN(**QUICK), CompiledFilm(), steps=200, frame_stack=3, out=tmp_path)
    batch = run.loop.replay.sample(jnp.linspace(0, 0.999, 200))
    assert run.loop.replay.obs.shape == (150, 2, 37)  # 147 bytes of one frame as 32-bit words
    assert {tuple(each) for each in newest(batch.obs)} <= {
        (0, 0, 10), (0, 10, 20), (10, 20, 30), (20, 30, 40), (30, 40, 50)
    }  # fmt: skip
    loaded = sv.load(run.folder.path, env=CompiledFilm())
    for a, b in zip(jax.tree.leaves(run.loop), jax.tree.leaves(loaded.loop), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_torso_sees_the_channels_of_all_frames_and_the_numbers_beside_the_image():
    colour = EnvSpec(0, 2, 0, (7, 7, 3), "float32")
    rng = np.random.default_rng(0)
    frames = jnp.asarray(rng.random((5, 4, 7, 7, 3)), jnp.float32)
    torso = Torso.create(stacked(colour, 4), "auto", 8, jax.random.key(0))
    assert torso.convolutions[0].dense.weight.shape == (16, 9 * 12)
    side_by_side = EnvSpec(0, 2, 0, (7, 7, 12), "float32")
    other = Torso.create(side_by_side, "auto", 8, jax.random.key(0))
    beside = jnp.moveaxis(frames, 1, 3).reshape(5, 7, 7, 12)
    np.testing.assert_allclose(torso(frames), other(beside), rtol=1e-5)
    packed = EnvSpec(0, 2, 0, (147 + 2,), "float32", image=(7, 7, 3))
    torso = Torso.create(packed, "auto", 8, jax.random.key(0))
    assert torso.layers[0].weight.shape == (8, 16 * 5 * 5 + 2)
    flat = jnp.concatenate([frames[:, 0].reshape(5, -1), jnp.zeros((5, 2))], axis=1)
    plain = Torso.create(colour, "auto", 8, jax.random.key(0))
    same = eqx_replace(plain, torso)
    np.testing.assert_allclose(torso(flat), same(frames[:, 0]), rtol=1e-5)
    assert not np.allclose(torso(flat.at[:, -1].set(1)), torso(flat))
    grey = EnvSpec(0, 2, 0, (6, 7), "uint8")
    assert Torso.create(grey, "auto", 8, jax.random.key(0)).convolutions


def eqx_replace(plain, packed):
    """Return a torso for images alone with the weights of one that has numbers beside them."""
    import equinox as eqx

    first = packed.layers[0]
    alone = eqx.tree_at(lambda dense: dense.weight, first, first.weight[:, :-2])
    swap = eqx.tree_at(lambda t: t.layers, plain, (alone, *packed.layers[1:]))
    return eqx.tree_at(lambda t: t.convolutions, swap, packed.convolutions)


def test_wrong_numbers_of_frames_are_refused(capsys):
    with pytest.raises(SurveyorError, match="frame_stack must be 0 or at least 2, not 1"):
        sv.train("dqn", Film, steps=10, frame_stack=1)
    with pytest.raises(SurveyorError, match="FrozenLake-v1 has numbered states, which cannot be"):
        sv.train("dqn", "FrozenLake-v1", steps=10, frame_stack=4)
    assert main(["train", "Tree-5", "--frame-stack", "4"]) == 2
    assert "--frame-stack has no effect on Tree-5" in capsys.readouterr().err
