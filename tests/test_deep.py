"""Torsos, and SU and Q networks on them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import surveyor as sv
from surveyor.deep import Convolution, DeepAdam, Torso, Trained, choose, times
from surveyor.types import Batch, EnvSpec, Trail

VECTOR = EnvSpec(0, 3, 0, (4,), "float32")
SMALL = EnvSpec(0, 3, 0, (10, 10, 4), "bool")
PIXELS = EnvSpec(0, 3, 0, (4, 84, 84), "uint8", stack=4)
AGENTS = [kind.minatar() for kind in (sv.SU, sv.DQN, sv.BootDQN, sv.BDQN, sv.UBE)]
AGENTS = [dataclasses.replace(agent, hidden=16) for agent in AGENTS]
AGENTS[0] = dataclasses.replace(AGENTS[0], features=8)


def observations(spec, n, seed=0):
    rng = np.random.default_rng(seed)
    if spec.dtype == "float32":
        return jnp.asarray(rng.standard_normal((n, *spec.shape)), jnp.float32)
    return jnp.asarray(
        rng.integers(0, 2 if spec.dtype == "bool" else 256, (n, *spec.shape)), spec.dtype
    )


def batch(spec, n=8, seed=0, **more):
    rng = np.random.default_rng(seed)
    return Batch(
        observations(spec, n, seed),
        jnp.asarray(rng.integers(0, 3, n), jnp.int32),
        jnp.asarray(rng.standard_normal(n), jnp.float32),
        observations(spec, n, seed + 1),
        jnp.asarray(rng.random(n) < 0.2),
        jnp.arange(n),
        jnp.full(n, 0.9),
        **more,
    )


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


@pytest.mark.parametrize(("m", "n", "b"), [(7, 5, 3), (3, 5, 40), (30, 5, 40)])
def test_a_product_has_the_gradients_of_a_product(m, n, b):
    shapes = [(m, n), (n, b), (m, b)]
    W, x, g = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(shapes))
    value, pull = jax.vjp(times, W, x)
    np.testing.assert_allclose(value, W @ x, rtol=1e-5, atol=1e-5)
    for ours, plain in zip(pull(g), jax.vjp(jnp.matmul, W, x)[1](g), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)


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
    state = jax.jit(lambda key: agent.init(spec, key))(jax.random.key(0))
    obs = observations(spec, 5)
    index = jax.jit(agent.sample)(state, jax.random.key(1))
    assert jax.jit(agent.q)(state, index, obs).shape == (5, 3)
    assert agent.q(state, index, obs[0]).shape == (3,)
    np.testing.assert_allclose(
        agent.q(state, index, obs)[2], agent.q(state, index, obs[2]), rtol=1e-3, atol=1e-5
    )
    data = batch(spec)
    seen = jax.jit(agent.observe)(state, data, jnp.arange(8) < 6)
    learnt, metrics = jax.jit(agent.learn)(seen, data, jax.random.key(2))
    assert jax.tree.structure(learnt) == jax.tree.structure(state)
    assert all(np.isfinite(value) for value in metrics.values())
    belief = agent.q_posterior(learnt, obs)
    assert belief.covariance.shape == (15, 15)
    assert np.all(np.isfinite(belief.covariance))
    logged = agent.diagnose(learnt, obs)
    assert "q_mean" in logged
    if isinstance(agent, sv.SU):
        assert {"posterior_trace", "posterior_condition", "policy_entropy"} <= set(logged)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)
def test_the_target_network_stands_still_between_its_updates(agent):
    agent = dataclasses.replace(agent, target_every=3, priority=0.5)
    state = agent.init(VECTOR, jax.random.key(0))
    learn, data = jax.jit(agent.learn), batch(VECTOR, weight=jnp.ones(8))

    def trained(state):
        return next(x for x in jax.tree.leaves(state, is_leaf=is_trained) if is_trained(x))

    first = trained(state).target
    for i in range(3):
        state, metrics = learn(state, data, jax.random.key(i))
        same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), trained(state).target, first)
        assert all(jax.tree.leaves(same)) == (i < 2)
    assert metrics["td_errors"].shape == (8,)


ADAM = DeepAdam(1e-3, 1e-8, 10.0, 100)


def is_trained(x):
    return isinstance(x, Trained)


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


def test_su_s_heads_are_those_of_appendix_c():
    agent = dataclasses.replace(sv.SU.atari(), hidden=32, features=16)
    state = agent.init(SMALL, jax.random.key(0))
    net, obs = state.model.trained.net, observations(SMALL, 4)
    hidden = net.torso(obs).T
    both = (hidden @ net.psi.weight.T + net.psi.bias).reshape(4, 4, 16)
    np.testing.assert_allclose(
        state.model.psi(obs), both[:, :1] + both[:, 1:], rtol=1e-4, atol=1e-5
    )
    action = jnp.array([0, 1, 2, 1])
    phi = jax.nn.relu(hidden @ net.phi.weight.T + net.phi.bias).reshape(4, 3, 16)
    phi = np.stack([phi[i, a] for i, a in enumerate(action)])
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    np.testing.assert_allclose(state.model.phi(obs, action), phi, rtol=1e-4, atol=1e-5)
    assert sv.SU.atari().hidden == 1024
    assert sv.SU.atari().features == 64


def test_n_step_targets_of_su_by_hand():
    """ψ is to become φ₀ + γφ₁ + γ²E[ψ₂], and Q the discounted rewards and γ² max Q₂."""
    agent = dataclasses.replace(
        sv.SU.minatar(), hidden=16, features=5, n_step=2, policy="optimistic"
    )
    state = agent.init(VECTOR, jax.random.key(0))
    state = dataclasses.replace(state, model=_with_w(state.model, jnp.arange(5.0)), rewards=WIDE)
    trail = Trail(
        observations(VECTOR, 8, 7)[:, None], jnp.zeros((8, 1), jnp.int32),
        jnp.where(jnp.arange(8)[:, None] < 4, 0.9, 0.0), jnp.ones(8),
    )  # fmt: skip
    data = batch(VECTOR, trail=trail)
    data = dataclasses.replace(data, discount=jnp.where(jnp.arange(8) < 4, 0.81, 0.9))
    successors, next_q = agent._targets(state, data, jax.random.key(0))
    psi = np.asarray(state.model.next_psi(data.next_obs))
    q = psi @ np.arange(5.0)
    deviation = np.sqrt(np.asarray(state.posterior.variance(jnp.asarray(psi))))
    chosen = psi[np.arange(8), np.argmax(q + deviation, axis=1)]
    alive = np.asarray(data.discount) * (1 - np.asarray(data.terminated))
    phi = np.asarray(state.model.phi(trail.obs, trail.action))[:, 0]
    expected = alive[:, None] * chosen + np.asarray(trail.discount) * phi
    np.testing.assert_allclose(successors, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(next_q, alive * q.max(1), rtol=1e-4, atol=1e-5)


WIDE = jnp.array([-1e3, 1e3])
"""The least and the largest reward, where no target of Q is to be bounded."""


def _with_w(model, w):
    where = lambda model: (model.trained.net.w, model.trained.target.w)  # noqa: E731
    return eqx.tree_at(where, model, (w, w + 0.0))


def test_double_dqn_chooses_with_one_network_and_values_with_the_other():
    agent = dataclasses.replace(sv.DQN.classic(), hidden=16, loss="squared", learning_rate=1e-9)
    data = batch(VECTOR)
    losses = {}
    for double in (False, True):
        agent = dataclasses.replace(agent, double=double)
        state = agent.init(VECTOR, jax.random.key(0))
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


def test_random_features_are_a_gaussian_kernel_and_stay_as_they_are():
    agent = dataclasses.replace(
        sv.SU.classic(), hidden=16, features=4100, random_features=4096, random_scale=2.0
    )
    state = agent.init(VECTOR, jax.random.key(0))
    obs = observations(VECTOR, 2)
    both = np.asarray(state.model.waves(obs, jnp.zeros(2, jnp.int32)))
    distance = np.linalg.norm(np.asarray(obs[0] - obs[1]))
    assert both[0] @ both[0] == pytest.approx(1.0, abs=0.05)
    assert both[0] @ both[1] == pytest.approx(np.exp(-((2.0 * distance) ** 2) / 2), abs=0.05)
    other = np.asarray(state.model.waves(obs, jnp.ones(2, jnp.int32)))
    assert abs(both[0] @ other[0]) < 0.1  # another action is another place
    phi = np.asarray(state.model.phi(obs, jnp.zeros(2, jnp.int32)))
    np.testing.assert_allclose(phi[:, 4:], both * 0.5**0.5, rtol=1e-5)
    small = dataclasses.replace(agent, features=12, random_features=8)
    state = small.init(VECTOR, jax.random.key(0))
    learnt, _ = jax.jit(small.learn)(state, batch(VECTOR), jax.random.key(1))
    np.testing.assert_array_equal(learnt.model.waves.directions, state.model.waves.directions)
    with pytest.raises(sv.SurveyorError, match="random_features must be from 0 to 11, not 12"):
        dataclasses.replace(small, random_features=12)


def test_su_s_double_target_chooses_with_one_network_and_values_with_the_other():
    agent = dataclasses.replace(
        sv.SU.minatar(), hidden=16, features=5, q_target="double", policy="optimistic"
    )
    state = agent.init(VECTOR, jax.random.key(0))
    model = _with_w(state.model, jnp.arange(5.0) - 2)
    state = dataclasses.replace(state, model=model, rewards=WIDE)
    data = batch(VECTOR)
    learning = np.asarray(state.model.psi(data.next_obs)) @ (np.arange(5.0) - 2)
    flipped = jax.tree.map(lambda x: -x, state.model.trained.target)
    flipped = eqx.tree_at(lambda net: net.w, flipped, jnp.arange(5.0) - 2)
    state = eqx.tree_at(lambda s: s.model.trained.target, state, flipped)
    valued = np.asarray(state.model.next_psi(data.next_obs)) @ (np.arange(5.0) - 2)
    expected = valued[np.arange(8), learning.argmax(1)]
    _, next_q = agent._targets(state, data, jax.random.key(0))
    alive = np.asarray(data.discount) * (1 - np.asarray(data.terminated))
    np.testing.assert_allclose(next_q, alive * expected, rtol=1e-4, atol=1e-4)


def test_successor_targets_stay_within_what_features_of_norm_one_can_add_up_to():
    agent = dataclasses.replace(
        sv.SU.minatar(), hidden=16, features=5, discount=0.9, policy="optimistic"
    )
    state = agent.init(VECTOR, jax.random.key(0))
    huge = jax.tree.map(lambda x: 1e3 * x, state.model.trained.target)
    state = eqx.tree_at(lambda s: s.model.trained.target, state, huge)
    data = dataclasses.replace(batch(VECTOR), terminated=jnp.zeros(8, bool))
    successors, _ = agent._targets(state, data, jax.random.key(0))
    longest = float(jnp.max(jnp.linalg.norm(successors, axis=1)))
    assert longest == pytest.approx(0.9 / (1 - 0.9), rel=1e-4)


def test_q_targets_stay_within_what_the_rewards_so_far_can_add_up_to():
    agent = dataclasses.replace(sv.SU.minatar(), hidden=16, features=5, discount=0.9)
    state = agent.init(VECTOR, jax.random.key(0))
    state = dataclasses.replace(state, model=_with_w(state.model, 1e3 * (jnp.arange(5.0) - 2)))
    data = dataclasses.replace(batch(VECTOR), terminated=jnp.zeros(8, bool))
    one = jax.tree.map(lambda x: x[:2], data)
    seen = dataclasses.replace(one, reward=jnp.array([-1.0, 7.0]))
    for mask, bounds in (((True, False), (-9.0, 0.0)), ((True, True), (-9.0, 63.0))):
        now = agent.observe(state, seen, jnp.array(mask))
        targets = [agent._targets(dataclasses.replace(now, model=model), data, jax.random.key(0))[1]
                   for model in (state.model, _with_w(state.model, -state.model.w))]  # fmt: skip
        found = jnp.concatenate(targets)
        assert (float(found.min()), float(found.max())) == pytest.approx(bounds, rel=1e-4)


@pytest.mark.parametrize(("w", "weight"), [(0.5, 1 / 4.0), (0.01, 100.0)])
def test_the_q_loss_can_be_counted_in_units_of_features(w, weight):
    """Divided by ‖ŵ‖², here 16 w², or by 0.01 where that is less."""
    plain = dataclasses.replace(sv.SU.minatar(), hidden=8, features=16, q_per_w=False)
    state = plain.init(VECTOR, jax.random.key(0))
    net = eqx.tree_at(lambda net: net.w, state.model.trained.net, jnp.full(16, w))
    state = eqx.tree_at(lambda state: state.model.trained, state, Trained.create(net, ADAM))
    steps = [
        dataclasses.replace(plain, **change).learn(state, batch(VECTOR), jax.random.key(1))[0]
        for change in ({"q_per_w": True, "q_weight": 1.0}, {"q_weight": weight})
    ]
    for a, b in zip(*map(jax.tree.leaves, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
