"""Frames of bytes as words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.replay.words import Words
from surveyor.types import EnvSpec


@pytest.mark.parametrize(
    ("shape", "dtype"), [((5, 3), "uint8"), ((8,), "bool"), ((2, 2, 2), "int8"), ((1,), "uint8")]
)
def test_frames_come_back_from_words(shape, dtype):
    words = Words.of(EnvSpec(0, 2, 0, shape, dtype))
    low, high = (0, 2) if dtype == "bool" else (-128, 128) if dtype == "int8" else (0, 256)
    frames = np.random.default_rng(0).integers(low, high, (4, 6, *shape)).astype(dtype)
    packed = jax.jit(words.pack)(jnp.asarray(frames))
    assert packed.dtype == jnp.uint32
    assert packed.shape == (4, 6, words.length)
    assert words.length == -(-frames[0, 0].nbytes // 4)
    back = jax.jit(words.unpack)(packed)
    assert back.dtype == frames.dtype
    np.testing.assert_array_equal(back, frames)


@pytest.mark.parametrize(
    "spec", [EnvSpec(9, 2), EnvSpec(0, 2, 0, (4,), "float32"), EnvSpec(0, 2, 0, (4,), "int32")]
)
def test_frames_of_other_numbers_stay_as_they_are(spec):
    assert Words.of(spec) is None
