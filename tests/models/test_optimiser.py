"""Adam against optax, and the target network."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from surveyor.models.optimiser import Adam, Trained
from surveyor.models.torsos import Torso
from tests.common import VECTOR


@pytest.fixture(scope="module")
def net():
    return Torso.create(VECTOR, "mlp", 4, jax.random.key(0))


def waves(net):
    return jax.tree.map(lambda x: jnp.sin(jnp.arange(x.size) + 1.0).reshape(x.shape), net)


def assert_close(ours, expected, rtol=1e-5):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol)


@pytest.mark.parametrize("longest", [0.5, 100.0, None])
@pytest.mark.parametrize("flat", [False, True])
def test_steps_are_optax_s_adam_with_a_clipped_gradient(net, longest, flat):
    adam = Adam(1e-2, 1e-6, longest, flat)
    clip = optax.identity() if longest is None else optax.clip_by_global_norm(longest)
    transform = optax.chain(clip, optax.adam(1e-2, eps=1e-6))
    ours, theirs = (net, adam.init(net)), (net, transform.init(net))
    for scale in (1.0, 30.0, 1e-3):  # a first step alone shows no more than signs
        gradients = jax.tree.map(lambda x, scale=scale: scale * x, waves(net))
        ours = adam.update(ours[0], gradients, ours[1])
        updates, state = transform.update(gradients, theirs[1])
        theirs = optax.apply_updates(theirs[0], updates), state
    assert_close(ours[0], theirs[0])


def test_the_target_network_stands_still_between_its_updates(net):
    trained = Trained.create(net, Adam(1e-2), 3)
    update, kept = jax.jit(lambda trained: trained.update(waves(net))), []
    for _ in range(7):
        trained = update(trained)
        kept.append(trained.net)
        newest = {3: 2, 4: 2, 5: 2, 6: 5, 7: 5}.get(int(trained.step))
        assert_close(trained.target, net if newest is None else kept[newest], 0)
    assert int(trained.step) == 7


def test_an_averaged_target_network_moves_a_share_of_the_way_at_every_step(net):
    trained = Trained.create(net, Adam(1e-2), 4, averaged=True)
    expected = jax.tree.map(lambda x: np.asarray(x, np.float64), net)
    for _ in range(3):
        trained = trained.update(waves(net))
        expected = jax.tree.map(lambda old, new: old + (new - old) / 4, expected, trained.net)
    assert_close(trained.target, expected)
    copied = Trained.create(net, Adam(1e-2), 4).update(waves(net))
    assert_close(copied.target, net, 0)
