"""Torsos: their choice, shapes and inputs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.errors import SurveyorError
from surveyor.models.torsos import Torso, choose, one_hot
from surveyor.types import EnvSpec, stacked
from tests.common import NAMES, PIXELS, SMALL, VECTOR, observations


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


def test_hidden_layers_can_be_normalised_before_their_relu():
    torso = Torso.create(VECTOR, "mlp", 6, jax.random.key(0), normalised=True)
    obs = observations(VECTOR, 5)
    x = np.asarray(obs, np.float64).T
    for layer in torso.layers:
        x = np.asarray(layer.weight, np.float64) @ x + np.asarray(layer.bias)[:, None]
        x = np.maximum((x - x.mean(0)) / x.std(0), 0)
    np.testing.assert_allclose(torso(obs), x, atol=1e-3)
    np.testing.assert_allclose(torso(7 * obs), x, atol=1e-3)  # biases are zero: no size of inputs


def test_any_batch_axes_are_flattened_and_named():
    torso = Torso.create(SMALL, "auto", 6, jax.random.key(0))
    rows, lead = torso.flatten(jnp.zeros((2, 3, *SMALL.shape), bool))
    assert (rows.shape, lead) == ((6, *SMALL.shape), (2, 3))
    rows, lead = torso.flatten(jnp.zeros(SMALL.shape, bool))
    assert (rows.shape, lead) == ((1, *SMALL.shape), ())


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_names_of_things_become_one_channel_each(dtype):
    codes, rng = (11, 6, 4), np.random.default_rng(0)
    image = rng.integers(0, codes * 2, (7, 5, 4, 6))  # two frames; channels last
    expected = np.concatenate(
        [np.eye(count)[image[..., i]] for i, count in enumerate(codes * 2)], axis=-1
    )
    found = one_hot(jnp.asarray(np.moveaxis(image, (3, 0), (0, 3)), dtype), codes)
    assert found.dtype == jnp.bool_
    np.testing.assert_array_equal(found, np.moveaxis(expected, (3, 0), (0, 3)))
    np.testing.assert_array_equal(np.sum(found, axis=0), 6)  # one name of each channel


def test_an_image_without_names_stays_as_it_is():
    image = jnp.asarray(np.random.default_rng(0).integers(0, 256, (3, 5, 4, 2)), jnp.uint8)
    assert one_hot(image, ()) is image


FLOATS = dataclasses.replace(NAMES, dtype="float32")
BESIDE = dataclasses.replace(FLOATS, shape=(5 * 5 * 3 + 4,))
FIRST = dataclasses.replace(NAMES, shape=(3, 5, 5), image=(3, 5, 5))
CODED = {
    "bytes": NAMES,
    "floats": FLOATS,
    "numbers beside": BESIDE,
    "channels first": FIRST,
    "two frames": stacked(NAMES, 2),
}


def named(spec, n):
    """Return observations of names, and the same with a channel for each name, first."""
    rng, frames = np.random.default_rng(0), max(1, spec.stack)
    image = rng.integers(0, spec.codes, (n, frames, 5, 5, 3))
    channels = [np.eye(count)[image[..., i]] for i, count in enumerate(spec.codes)]
    hot = np.moveaxis(np.concatenate(channels, axis=-1), -1, 2)
    image = np.moveaxis(image, -1, 2) if spec.image[0] == 3 else image
    lead = (n, frames) if spec.stack else (n,)
    if len(spec.frame) > 1:
        return image.reshape(*lead, *spec.image), hot.reshape(*lead, *hot.shape[2:])
    more = rng.standard_normal((n, 4))
    return [np.concatenate([one.reshape(n, -1), more], axis=1) for one in (image, hot)]


@pytest.mark.parametrize("kind", ["mlp", "minatar"])
@pytest.mark.parametrize("name", CODED)
def test_a_torso_reads_names_as_it_reads_an_image_with_a_channel_for_each(name, kind):
    spec = CODED[name]
    obs, hot = named(spec, 6)
    plain = EnvSpec(0, 3, 0, hot.shape[1:], "float32", stack=spec.stack, image=(21, 5, 5))
    torso, other = (Torso.create(one, kind, 8, jax.random.key(0)) for one in (spec, plain))
    weights = [jax.tree.leaves((one.convolutions, one.layers)) for one in (torso, other)]
    for mine, theirs in zip(*weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    found = torso(jnp.asarray(obs, spec.dtype))
    np.testing.assert_allclose(found, other(jnp.asarray(hot, jnp.float32)), rtol=1e-5, atol=1e-6)
    assert np.count_nonzero(found) > 10


def test_names_are_fed_to_the_layers_as_by_hand():
    """A convolution of 3 × 3 and a layer, in float64, with numbers beside the image."""
    torso = Torso.create(BESIDE, "auto", 8, jax.random.key(0))
    obs, hot = named(BESIDE, 4)
    (convolution,), (layer,) = torso.convolutions, torso.layers
    image, beside = hot[:, :-4].reshape(4, 21, 5, 5), hot[:, -4:]
    kernel = np.asarray(convolution.dense.weight, np.float64).reshape(16, 3, 3, 21)
    seen = np.zeros((4, 16, 3, 3))
    for i, j in np.ndindex(3, 3):
        part = image[:, :, i : i + 3, j : j + 3]
        seen += np.einsum("oc,bchw->bohw", kernel[:, i, j], part)
    seen = np.maximum(seen + np.asarray(convolution.dense.bias)[:, None, None], 0)
    x = np.concatenate([seen.reshape(4, -1), beside], axis=1)
    x = np.maximum(x @ np.asarray(layer.weight, np.float64).T + np.asarray(layer.bias), 0)
    np.testing.assert_allclose(torso(jnp.asarray(obs, jnp.float32)).T, x, rtol=1e-4, atol=1e-5)
