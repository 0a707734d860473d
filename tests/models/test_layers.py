"""Torsos, and agents on them; what is SU's alone is in agents/test_deep_su.py."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import surveyor as sv
from surveyor.models.deep import Convolution, DeepAdam, Dense, Torso, Trained, choose, times
from surveyor.types import EnvSpec
from tests.common import SMALL, VECTOR, batch, begun, observations

PIXELS = EnvSpec(0, 3, 0, (4, 84, 84), "uint8", stack=4)
AGENTS = [kind.minatar() for kind in (sv.SU, sv.DQN, sv.BootDQN, sv.BDQN, sv.UBE)]
AGENTS = [dataclasses.replace(agent, hidden=16) for agent in AGENTS]
AGENTS[0] = dataclasses.replace(AGENTS[0], features=8)


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (4, 2), (8, 4)])
def test_a_convolution_is_xla_s_own(kernel, stride):
    layer = Convolution.create(jax.random.key(0), 3, 5, kernel, stride)
    x = jax.random.normal(jax.random.key(1), (3, 21, 18, 2))
    # Our inputs are ordered by blocks of the stride, then by channels, then by pixels in a block.
    blocks = kernel // stride
    form = ("CHWN", "OIHW", "CHWN")

    def ours(layer, x):
        return layer(x)

    def xla_s(layer, x):
        W = layer.dense.weight.reshape(5, blocks, blocks, 3, stride, stride)
        W = W.transpose(0, 3, 1, 4, 2, 5).reshape(5, 3, kernel, kernel)
        strides = (stride, stride)
        y = jax.lax.conv_general_dilated(x, W, strides, "VALID", dimension_numbers=form)
        return jax.nn.relu(y)

    np.testing.assert_allclose(ours(layer, x), xla_s(layer, x), rtol=1e-4, atol=1e-4)
    gradients = [
        jax.grad(lambda both, f=f: jnp.sum(f(*both) ** 2))((layer, x)) for f in (ours, xla_s)
    ]
    for a, b in (
        (gradients[0][0].dense.weight, gradients[1][0].dense.weight),
        (gradients[0][1], gradients[1][1]),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "n", "b"), [(7, 5, 3), (3, 5, 40), (30, 5, 40), (60, 50, 3)])
def test_a_product_has_the_gradients_of_a_product(m, n, b):
    shapes = [(m, n), (n, b), (m, b)]
    W, x, g = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(shapes))
    value, pull = jax.vjp(times, W, x)
    np.testing.assert_allclose(value, W @ x, rtol=1e-5, atol=1e-5)
    for ours, plain in zip(pull(g), jax.vjp(jnp.matmul, W, x)[1](g), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)


def test_a_layer_has_the_gradients_of_weights_and_bias():
    layer = Dense.create(jax.random.key(0), 5, 4)
    layer = eqx.tree_at(lambda layer: layer.bias, layer, jnp.arange(4.0))
    x, g = jax.random.normal(jax.random.key(1), (5, 3)), jnp.arange(12.0).reshape(4, 3)
    value, pull = jax.vjp(lambda layer: layer(x), layer)
    np.testing.assert_allclose(value, layer.weight @ x + layer.bias[:, None], rtol=1e-5)
    (gradient,) = pull(g)
    np.testing.assert_allclose(gradient.bias, [3, 12, 21, 30])
    np.testing.assert_allclose(gradient.weight, g @ x.T, rtol=1e-5)


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
        (VECTOR, "minatar", "is for images, of three axes"),
    ):
        with pytest.raises(sv.SurveyorError, match=sentence):
            Torso.create(spec, name, 8, jax.random.key(0))
    # Bytes are brought to [0, 1], and channels may come first or last.
    full = jnp.full((1, 4, 84, 84), 255, jnp.uint8)
    by_hand = Torso.create(
        EnvSpec(0, 3, 0, (84, 84, 4), "float32"), "nature", 1024, jax.random.key(0)
    )
    np.testing.assert_allclose(torso(full), by_hand(jnp.ones((1, 84, 84, 4))), rtol=1e-5)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)
@pytest.mark.parametrize("spec", [VECTOR, SMALL], ids=["vector", "image"])
def test_agents_run_on_networks_as_on_tables(agent, spec):
    state = begun(agent, spec)
    obs = observations(spec, 5)
    index = jax.jit(agent.sample)(state, jax.random.key(1))
    q = jax.jit(agent.q)
    assert q(state, index, obs).shape == (5, 3)
    assert q(state, index, obs[0]).shape == (3,)
    np.testing.assert_allclose(
        q(state, index, obs)[2], q(state, index, obs[2]), rtol=1e-3, atol=1e-5
    )
    data = batch(spec)
    seen = jax.jit(agent.observe)(state, data, jnp.arange(8) < 6)
    learnt, metrics = jax.jit(agent.learn)(seen, data, jax.random.key(2))
    assert jax.tree.structure(learnt) == jax.tree.structure(state)
    assert all(np.isfinite(value) for value in metrics.values())
    belief = jax.jit(agent.q_posterior)(learnt, obs)
    assert belief.covariance.shape == (15, 15)
    assert np.all(np.isfinite(belief.covariance))
    logged = jax.jit(agent.diagnose)(learnt, obs)
    assert "q_mean" in logged
    if isinstance(agent, sv.SU | sv.BDQN | sv.UBE):
        assert {"posterior_trace", "posterior_condition"} <= set(logged)
    assert ("policy_entropy" in logged) == isinstance(agent, sv.SU)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)
def test_the_target_network_stands_still_between_its_updates(agent):
    agent = dataclasses.replace(agent, target_every=3, priority=0.5)
    state = begun(agent)
    learn, data = jax.jit(agent.learn), batch(VECTOR, weight=jnp.ones(8))

    def trained(state):
        return next(x for x in jax.tree.leaves(state, is_leaf=is_trained) if is_trained(x))

    first = trained(state).target
    for i in range(3):
        state, metrics = learn(state, data, jax.random.key(i))
        same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), trained(state).target, first)
        assert all(jax.tree.leaves(same)) == (i < 2)
    assert metrics["td_errors"].shape == (8,)


def is_trained(x):
    return isinstance(x, Trained)


def test_gradients_are_clipped_as_optax_does():
    net = Torso.create(VECTOR, "mlp", 4, jax.random.key(0))
    gradients = jax.tree.map(lambda x: jnp.sin(jnp.arange(x.size) + 1.0).reshape(x.shape), net)
    for longest in (0.5, 100.0):
        ours = DeepAdam(1e-2, 1e-8, longest, 100).clip(gradients)
        plain, _ = optax.clip_by_global_norm(longest).update(gradients, optax.EmptyState())
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_the_step_is_optax_s_adam_with_a_clipped_gradient():
    adam = DeepAdam(1e-2, 1e-8, 0.5, 100)
    net = Torso.create(VECTOR, "mlp", 4, jax.random.key(0))
    gradients = jax.tree.map(lambda x: jnp.ones_like(x), net)
    new = Trained.create(net, adam).update(gradients).net
    transform = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2))
    updates, _ = transform.update(gradients, transform.init(net))
    expected = optax.apply_updates(net, updates)
    for a, b in zip(jax.tree.leaves(new), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_double_dqn_chooses_with_one_network_and_values_with_the_other():
    agent = dataclasses.replace(sv.DQN.classic(), hidden=16, loss="squared", learning_rate=1e-9)
    data = batch(VECTOR)
    losses = {}
    for double in (False, True):
        agent = dataclasses.replace(agent, double=double)
        state = begun(agent)
        other = jax.tree.map(lambda x: -x, state.network.trained.net)
        state = eqx.tree_at(lambda s: s.network.trained.target, state, other)
        network = state.network
        valued = np.asarray(network.next_q(data.next_obs))[:, 0]
        choosing = np.asarray(network.q(data.next_obs))[:, 0] if double else valued
        value = valued[np.arange(8), choosing.argmax(1)]
        target = np.asarray(data.reward) + 0.9 * (1 - np.asarray(data.terminated)) * value
        q = np.asarray(network.q(data.obs))[np.arange(8), 0, np.asarray(data.action)]
        losses[double] = float(agent.learn(state, data, jax.random.key(0))[1]["q_loss"])
        assert losses[double] == pytest.approx(np.mean((q - target) ** 2), rel=1e-3)
    assert losses[True] != pytest.approx(losses[False], rel=1e-3)
