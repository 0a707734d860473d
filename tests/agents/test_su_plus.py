"""SU on networks: heads, targets and losses, by hand."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv
from surveyor import agents
from surveyor.agents.su import one_of
from surveyor.models.deep import DeepAdam, Trained
from surveyor.types import Trail
from tests.common import SMALL, VECTOR, batch, begun, observations

WIDE = jnp.array([-1e3, 1e3])
"""The least and the largest reward, where no target of Q is to be bounded."""


def _with_w(model, w):
    where = lambda model: (model.trained.net.w, model.trained.target.w)  # noqa: E731
    return eqx.tree_at(where, model, (w, w + 0.0))


def test_su_s_heads_are_those_of_appendix_c():
    agent = dataclasses.replace(sv.SU.atari(), hidden=32, features=16)
    state = begun(agent, SMALL)
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


def test_the_released_heads_share_a_norm_and_are_never_negative():
    agent = dataclasses.replace(sv.SU.atari(), hidden=32, features=16)
    released = dataclasses.replace(agent, psi_relu=True, normalise_together=True)
    state, obs = begun(agent, SMALL), observations(SMALL, 4)
    other = begun(released, SMALL)  # from the same key, so with the same weights
    plain = np.asarray(state.model.psi(obs))
    assert plain.min() < 0
    np.testing.assert_allclose(other.model.psi(obs), np.maximum(plain, 0), rtol=1e-5)
    every = [other.model.phi(obs, jnp.full(4, a)) for a in range(3)]
    np.testing.assert_allclose(np.sum(np.square(every), axis=(0, 2)), 1.0, rtol=1e-5)
    for a, phi in enumerate(every):  # each points where it did
        cosine = np.sum(phi * np.asarray(state.model.phi(obs, jnp.full(4, a))), axis=1)
        np.testing.assert_allclose(cosine, np.linalg.norm(phi, axis=1), rtol=1e-4)


def test_the_paper_s_own_settings_for_atari_have_nothing_of_ours():
    for name in ("text_atari", "released_atari"):
        agent = agents.preset("su", "ALE", name)
        assert not agent.bound_targets
        assert agent.psi_relu
        assert (agent.features, agent.hidden, agent.learning_rate) == (64, 1024, 5e-5)
        small = dataclasses.replace(agent, hidden=16, features=5)
        state = begun(small)
        state = dataclasses.replace(state, model=_with_w(state.model, 1e3 * jnp.ones(5)))
        next_q = jax.jit(small._targets)(state, batch(VECTOR), jax.random.key(0))[1]
        assert np.max(next_q) > 1  # though no reward has been seen


def test_n_step_targets_of_su_by_hand():
    """ψ is to become φ₀ + γφ₁ + γ²E[ψ₂], and Q the discounted rewards and γ² max Q₂."""
    agent = dataclasses.replace(
        sv.SU.minatar(), hidden=16, features=5, n_step=2, policy="optimistic"
    )
    state = begun(agent)
    state = dataclasses.replace(state, model=_with_w(state.model, jnp.arange(5.0)), rewards=WIDE)
    trail = Trail(
        observations(VECTOR, 8, 7)[:, None], jnp.zeros((8, 1), jnp.int32),
        jnp.where(jnp.arange(8)[:, None] < 4, 0.9, 0.0), jnp.ones(8),
    )  # fmt: skip
    data = batch(VECTOR, trail=trail)
    data = dataclasses.replace(data, discount=jnp.where(jnp.arange(8) < 4, 0.81, 0.9))
    successors, next_q = jax.jit(agent._targets)(state, data, jax.random.key(0))
    psi = np.asarray(state.model.next_psi(data.next_obs))
    q = psi @ np.arange(5.0)
    deviation = np.sqrt(np.asarray(state.posterior.variance(jnp.asarray(psi))))
    chosen = psi[np.arange(8), np.argmax(q + deviation, axis=1)]
    alive = np.asarray(data.discount) * (1 - np.asarray(data.terminated))
    phi = np.asarray(state.model.phi(trail.obs, trail.action))[:, 0]
    expected = alive[:, None] * chosen + np.asarray(trail.discount) * phi
    np.testing.assert_allclose(successors, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(next_q, alive * q.max(1), rtol=1e-4, atol=1e-5)


def test_one_step_between_stands_for_all_on_average():
    """Steps are drawn by their discounts, count for all of them, and never come from beyond the
    end of an episode."""
    gamma = jnp.array([[0.9, 0.81, 0.729], [0.9, 0.81, 0.0], [0.0, 0.0, 0.0]])
    obs = jnp.arange(9.0).reshape(3, 3, 1)
    trail = Trail(obs, jnp.arange(9).reshape(3, 3), gamma, jnp.ones(3))
    drawn = jax.jit(jax.vmap(lambda key: one_of(trail, key)))(
        jax.random.split(jax.random.key(0), 9000)
    )
    np.testing.assert_array_equal(drawn.obs[..., 0], drawn.action)
    np.testing.assert_allclose(drawn.discount[0, :, 0], gamma.sum(1), rtol=1e-6)
    assert np.all(np.asarray(drawn.action)[:, 1] < 5)
    mean = np.mean(np.asarray(drawn.discount * drawn.obs[..., 0]), axis=0)[:, 0]
    np.testing.assert_allclose(mean, np.sum(gamma * obs[..., 0], axis=1), atol=0.1)

    agent = dataclasses.replace(sv.SU.minatar(), hidden=16, features=5, n_step=2)
    state, data = begun(agent), batch(VECTOR)
    trail = Trail(
        observations(VECTOR, 8, 7)[:, None], jnp.zeros((8, 1), jnp.int32),
        jnp.full((8, 1), 0.9), jnp.ones(8),
    )  # fmt: skip
    data = dataclasses.replace(data, trail=trail, discount=jnp.full(8, 0.81))
    both = [
        jax.jit(dataclasses.replace(agent, between=between)._targets)(
            state, data, jax.random.key(0)
        )
        for between in ("all", "one")
    ]
    np.testing.assert_allclose(*[successors for successors, _ in both], rtol=1e-5, atol=1e-6)


def test_random_features_are_a_gaussian_kernel_and_stay_as_they_are():
    agent = dataclasses.replace(
        sv.SU.classic(), hidden=16, features=4100, random_features=4096, random_scale=2.0
    )
    state = begun(agent)
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
    state = begun(small)
    learnt, _ = jax.jit(small.learn)(state, batch(VECTOR), jax.random.key(1))
    np.testing.assert_array_equal(learnt.model.waves.directions, state.model.waves.directions)
    with pytest.raises(sv.SurveyorError, match="random_features must be from 0 to 11, not 12"):
        dataclasses.replace(small, random_features=12)


def test_su_s_double_target_chooses_with_one_network_and_values_with_the_other():
    agent = dataclasses.replace(
        sv.SU.minatar(), hidden=16, features=5, q_target="double", policy="optimistic"
    )
    state = begun(agent)
    model = _with_w(state.model, jnp.arange(5.0) - 2)
    state = dataclasses.replace(state, model=model, rewards=WIDE)
    data = batch(VECTOR)
    learning = np.asarray(state.model.psi(data.next_obs)) @ (np.arange(5.0) - 2)
    flipped = jax.tree.map(lambda x: -x, state.model.trained.target)
    flipped = eqx.tree_at(lambda net: net.w, flipped, jnp.arange(5.0) - 2)
    state = eqx.tree_at(lambda s: s.model.trained.target, state, flipped)
    valued = np.asarray(state.model.next_psi(data.next_obs)) @ (np.arange(5.0) - 2)
    expected = valued[np.arange(8), learning.argmax(1)]
    _, next_q = jax.jit(agent._targets)(state, data, jax.random.key(0))
    alive = np.asarray(data.discount) * (1 - np.asarray(data.terminated))
    np.testing.assert_allclose(next_q, alive * expected, rtol=1e-4, atol=1e-4)


def test_successor_targets_stay_within_what_features_of_norm_one_can_add_up_to():
    agent = dataclasses.replace(
        sv.SU.minatar(), hidden=16, features=5, discount=0.9, policy="optimistic"
    )
    state = begun(agent)
    huge = jax.tree.map(lambda x: 1e3 * x, state.model.trained.target)
    state = eqx.tree_at(lambda s: s.model.trained.target, state, huge)
    data = dataclasses.replace(batch(VECTOR), terminated=jnp.zeros(8, bool))
    successors, _ = jax.jit(agent._targets)(state, data, jax.random.key(0))
    longest = float(jnp.max(jnp.linalg.norm(successors, axis=1)))
    assert longest == pytest.approx(0.9 / (1 - 0.9), rel=1e-4)


def test_q_targets_stay_within_what_the_rewards_so_far_can_add_up_to():
    agent = dataclasses.replace(sv.SU.minatar(), hidden=16, features=5, discount=0.9)
    state = begun(agent)
    state = dataclasses.replace(state, model=_with_w(state.model, 1e3 * (jnp.arange(5.0) - 2)))
    data = dataclasses.replace(batch(VECTOR), terminated=jnp.zeros(8, bool))
    one = jax.tree.map(lambda x: x[:2], data)
    seen = dataclasses.replace(one, reward=jnp.array([-1.0, 7.0]))
    for mask, bounds in (((True, False), (-9.0, 0.0)), ((True, True), (-9.0, 63.0))):
        now = agent.observe(state, seen, jnp.array(mask))
        found = []
        for model in (state.model, _with_w(state.model, -state.model.w)):
            both = dataclasses.replace(now, model=model)
            found.append(jax.jit(agent._targets)(both, data, jax.random.key(0))[1])
        found = jnp.concatenate(found)
        assert (float(found.min()), float(found.max())) == pytest.approx(bounds, rel=1e-4)


@pytest.mark.parametrize(("w", "weight"), [(0.5, 1 / 4.0), (0.01, 100.0)])
def test_the_q_loss_can_be_counted_in_units_of_features(w, weight):
    """Divided by ‖ŵ‖², here 16 w², or by 0.01 where that is less."""
    plain = dataclasses.replace(sv.SU.minatar(), hidden=8, features=16, q_per_w=False)
    state = begun(plain)
    net = eqx.tree_at(lambda net: net.w, state.model.trained.net, jnp.full(16, w))
    adam = DeepAdam(1e-3, 1e-8, 10.0, 100)
    state = eqx.tree_at(lambda state: state.model.trained, state, Trained.create(net, adam))
    steps = [
        jax.jit(dataclasses.replace(plain, **change).learn)(
            state, batch(VECTOR), jax.random.key(1)
        )[0]
        for change in ({"q_per_w": True, "q_weight": 1.0}, {"q_weight": weight})
    ]
    for a, b in zip(*map(jax.tree.leaves, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
