"""Torsos: their choice, shapes and inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.errors import SurveyorError
from surveyor.models.layers import Torso, choose
from surveyor.types import EnvSpec
from tests.common import PIXELS, SMALL, VECTOR, observations


def test_torsos_are_chosen_by_the_observation_and_have_the_paper_s_shapes():
    assert choose(VECTOR) == "mlp"
    assert choose(SMALL) == "minatar"
    assert choose(PIXELS) == "nature"
    torso = Torso.create(PIXELS, "auto", 1024, jax.random.key(0))
    assert torso.layers[0].weight.shape == (1024, 3136)
    assert [c.dense.weight.shape[0] for c in torso.convolutions] == [32, 64, 64]
    assert torso(observations(PIXELS, 2)).shape == (1024, 2)
    for spec, name, sentence in (
        (SMALL, "nature", "too small for the nature torso"),
        (VECTOR, "minatar", "is for images, of two or three axes"),
    ):
        with pytest.raises(SurveyorError, match=sentence):
            Torso.create(spec, name, 8, jax.random.key(0))
    # Bytes are brought to [0, 1], and channels may come first or last.
    full = jnp.full((1, 4, 84, 84), 255, jnp.uint8)
    by_hand = Torso.create(
        EnvSpec(0, 3, 0, (84, 84, 4), "float32"), "nature", 1024, jax.random.key(0)
    )
    np.testing.assert_allclose(torso(full), by_hand(jnp.ones((1, 84, 84, 4))), rtol=1e-5)


def test_an_mlp_is_two_layers_with_a_relu_after_each():
    torso, obs = Torso.create(VECTOR, "auto", 6, jax.random.key(0)), observations(VECTOR, 5)
    x = np.asarray(obs, np.float64).T
    for layer in torso.layers:
        x = np.maximum(
            np.asarray(layer.weight, np.float64) @ x + np.asarray(layer.bias)[:, None], 0
        )
    assert len(torso.layers) == 2
    np.testing.assert_allclose(torso(obs), x, rtol=1e-4, atol=1e-5)


def test_any_batch_axes_are_flattened_and_named():
    torso = Torso.create(SMALL, "auto", 6, jax.random.key(0))
    rows, lead = torso.flatten(jnp.zeros((2, 3, *SMALL.shape), bool))
    assert (rows.shape, lead) == ((6, *SMALL.shape), (2, 3))
    rows, lead = torso.flatten(jnp.zeros(SMALL.shape, bool))
    assert (rows.shape, lead) == ((1, *SMALL.shape), ())
