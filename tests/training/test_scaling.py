"""Observations of any size reach the network as numbers about 1."""

import dataclasses

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import surveyor as sv
from surveyor.envs.packing import Leaf, Packing
from surveyor.training.scaling import Ranges, Scaled
from surveyor.types import EnvSpec, stacked

INF = float("inf")
QUICK = {"batch_size": 8, "warmup": 20, "envs": 2, "train_every": 4, "gradient_steps": 1}
QUICK |= {"hidden": 8, "replay_capacity": 200}


def spec(shape, dtype, bounds, image=(), codes=()):
    return EnvSpec(0, 3, 0, shape, dtype, image=image, bounds=bounds, codes=codes)


def test_numbers_are_scaled_by_bounds_or_by_the_range_seen_so_far():
    ranges = Ranges.create(spec((3,), "float32", ((-1.2, 0.6), (-INF, INF), (0.0, INF))))
    assert np.asarray(ranges.scale(jnp.array([0.6, 5.0, 7.0]))).tolist() == pytest.approx([1, 0, 0])
    seen = jnp.array([[0.0, -50.0, 4.0], [0.1, 150.0, 8.0], [9.0, 1e9, 1e9]])
    ranges = ranges.widen(seen, jnp.array([True, True, False]))  # the last is none of ours
    np.testing.assert_allclose(ranges.low, [-1.2, -50, 0], rtol=1e-6)
    np.testing.assert_allclose(ranges.high, [0.6, 150, 8], rtol=1e-6)
    scaled = ranges.scale(jnp.array([[-0.3, 50.0, 8.0], [-1.2, -50.0, 4.0]]))
    np.testing.assert_allclose(scaled, [[0, 0, 1], [-1, -1, 0]], atol=1e-6)


def test_an_image_is_scaled_by_channels_and_the_numbers_beside_it_by_themselves():
    flat = spec((29,), "uint8", ((0.0, INF), (0.0, INF), (0.0, 4.0), (-1.0, 1.0)), (3, 3, 3))
    flat = dataclasses.replace(flat, bounds=(*flat.bounds[:3], (0.0, 4.0), (-1.0, 1.0)))
    image = np.zeros((3, 3, 3), np.uint8)
    image[1, 2], image[0, 0] = (10, 0, 2), (5, 0, 1)
    obs = jnp.asarray([*image.reshape(-1), 3, 1], jnp.uint8)
    ranges = Ranges.create(flat).widen(obs[None], jnp.array([True]))
    assert ranges.high.tolist() == [10, 0, 4, 4, 1]
    scaled = np.asarray(ranges.scale(obs))
    picture = scaled[:27].reshape(3, 3, 3)
    np.testing.assert_allclose(picture[1, 2], [1, 0, 0.5])
    np.testing.assert_allclose(picture[0, 0], [0.5, 0, 0.25])
    np.testing.assert_allclose(scaled[27:], [0.5, 1])
    # The same image alone, with channels first or last, and stacked.
    alone = spec((3, 3, 3), "uint8", flat.bounds[:3])
    for one in (alone, stacked(alone, 2)):
        frames = jnp.broadcast_to(jnp.asarray(image), (1, *one.shape))
        found = Ranges.create(one).widen(frames, jnp.array([True])).scale(frames)
        np.testing.assert_allclose(found.reshape(-1, 3, 3, 3)[-1], picture)


def test_an_image_of_names_stays_as_it_is_and_the_numbers_beside_it_are_scaled():
    image = np.arange(27, dtype=np.uint8).reshape(3, 3, 3) % (11, 6, 4)
    space = spaces.Dict(
        image=spaces.Box(0, np.broadcast_to((10, 5, 3), (3, 3, 3)), (3, 3, 3), np.uint8),
        far=spaces.Box(-2.0, 8.0, (2,)),
    )
    leaves = [Leaf.of(s.shape, s.dtype, s.low, s.high) for s in space.values()]  # far is first
    packed = Packing.of(leaves).specify(3)
    assert (packed.image, packed.codes) == ((3, 3, 3), (11, 6, 4))
    assert packed.bounds == ((0, 10), (0, 5), (0, 3), (-2, 8), (-2, 8))
    obs = jnp.asarray([*image.reshape(-1), 8, -2], jnp.float32)
    ranges = Ranges.create(packed).widen(obs[None], jnp.array([True]))
    scaled = np.asarray(ranges.scale(obs))
    np.testing.assert_array_equal(scaled[:27].reshape(3, 3, 3), image)
    np.testing.assert_allclose(scaled[27:], [1, -1])
    sizes = dataclasses.replace(packed, codes=())
    np.testing.assert_allclose(
        np.asarray(Ranges.create(sizes).scale(obs))[:27].reshape(3, 3, 3), image / (10, 5, 3)
    )
    # The same image alone, and stacked.
    alone = spec((3, 3, 3), "uint8", packed.bounds[:3], codes=packed.codes)
    for one in (alone, stacked(alone, 2)):
        frames = jnp.broadcast_to(jnp.asarray(image, jnp.uint8), (1, *one.shape))
        np.testing.assert_array_equal(Ranges.create(one).scale(frames), frames)


@pytest.mark.parametrize(
    ("low", "high", "dtype", "codes"),
    [
        (0, (10, 5, 3), np.uint8, (11, 6, 4)),
        (0, (15, 5, 3), np.int32, (16, 6, 4)),
        (0, (16, 5, 3), np.uint8, ()),  # too many to be names
        (0, (10, 5, 1), np.uint8, ()),  # a flag is a number
        (-1, (10, 5, 3), np.int32, ()),
        (0, (10, 5, 3), np.float32, ()),
        (0, 255, np.uint8, ()),
    ],
)
def test_whole_numbers_below_16_in_an_image_are_names(low, high, dtype, codes):
    assert Leaf.of((4, 4, 3), dtype, low, np.broadcast_to(high, (4, 4, 3))).codes == codes
    assert Leaf.of((3,), dtype, low, np.broadcast_to(high, (3,))).codes == ()  # no image


class Bytes(gymnasium.Env):
    """Symbols of at most 3 in a space of bytes, with numbers of a hundred beside them."""

    observation_space = spaces.Dict(
        symbols=spaces.Box(0, 255, (5, 5, 2), np.uint8), far=spaces.Box(-np.inf, np.inf, (2,))
    )
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._see(), {}

    def step(self, action):
        return self._see(), float(action == 1), bool(self.np_random.random() < 0.2), False, {}

    def _see(self):
        symbols = self.np_random.integers(0, 4, (5, 5, 2)).astype(np.uint8)
        return {"symbols": symbols, "far": self.np_random.normal(500, 100, 2).astype(np.float32)}


def test_the_network_sees_symbols_and_large_numbers_about_one():
    run = sv.train(sv.DQN(**QUICK), Bytes, steps=200)
    assert isinstance(run.agent, Scaled)
    assert run.agent.batch_size == 8  # hyperparameters are still there
    assert run.runner.spec.dtype == "float32"
    obs = run.loop.replay.obs[:50].reshape(-1, 52)
    assert obs.max() > 500  # the replay holds them as they came
    seen = np.asarray(run.state.ranges.scale(jnp.asarray(obs)))
    assert seen[:, :50].max() == 1.0
    assert seen[:, :50].min() == 0.0
    assert -1 <= seen[:, 50:].min() < -0.5 < 0.5 < seen[:, 50:].max() <= 1
    env = Bytes()
    first, _ = env.reset(seed=0)
    action, _ = run.predict(first)
    assert action in (0, 1, 2)
    assert run.q_posterior(first).mean.shape == (1, 3)


def test_scaling_is_part_of_the_checkpoint_and_of_an_exact_resume(tmp_path):
    whole = sv.train(sv.DQN(**QUICK), Bytes, steps=400)
    stopped = sv.train(sv.DQN(**QUICK), Bytes, steps=400, out=tmp_path, report=_stop_early())
    assert not stopped.finished
    again = sv.resume(stopped.folder.path, env=Bytes)
    for a, b in zip(jax.tree.leaves(whole.state), jax.tree.leaves(again.state), strict=True):
        np.testing.assert_array_equal(a, b)
    loaded = sv.load(again.folder.path, env=Bytes)
    np.testing.assert_array_equal(loaded.state.ranges.high, whole.state.ranges.high)


def _stop_early():
    import os
    import signal

    def report(run):
        if run.progress >= 100:
            os.kill(os.getpid(), signal.SIGINT)

    return report


def test_scaling_can_be_switched_off_which_makes_another_run(tmp_path):
    plain = sv.train(sv.DQN(**QUICK), Bytes, steps=40, scale=False, out=tmp_path)
    assert not isinstance(plain.agent, Scaled)
    scaled = sv.train(sv.DQN(**QUICK), Bytes, steps=40, out=tmp_path)
    assert plain.folder.path != scaled.folder.path
    assert sv.load(plain.folder.path, env=Bytes).config.scale is False


def test_what_needs_no_scaling_gets_none():
    run = sv.train(sv.DQN(**QUICK), "FrozenLake-v1", steps=40)
    assert not isinstance(run.agent, Scaled)


def test_switching_it_off_where_nothing_is_scaled_is_refused():
    with pytest.raises(sv.SurveyorError, match="Nothing is scaled here, so scale = False has no"):
        sv.train(sv.DQN(**QUICK), "FrozenLake-v1", steps=40, scale=False)
