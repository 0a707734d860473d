"""SU+: novelty features, optimism, bounds and several steps, with numbers of their own."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor import SUPlus
from surveyor.agents.su_plus import one_step
from surveyor.inference.policies import Joint, Optimistic
from surveyor.models.losses import Weighted
from surveyor.models.successors import Bounded, Novelty
from surveyor.types import EnvSpec, Schedule, Trail
from tests.agents.test_su import transition
from tests.common import VECTOR, batch, begun, observations

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=4)
WIDE = jnp.array([-1e3, 1e3])
"""Smallest and largest reward, where no target of Q is to be bounded."""
TABLE = SUPlus(
    features=3, novelty=0, successor_trains="all", batch_size=2, replay="uniform",
    gradient_steps=1,
)  # fmt: skip
NET = dataclasses.replace(SUPlus.preset("minatar"), hidden=16, features=5, q_target="max")
OPTIMISTIC = dataclasses.replace(NET, policy="optimistic")


def with_w(state, w):
    """Return the state of a network with this ŵ, in its target network too."""
    where = lambda s: (s.model.inner.trained.net.w, s.model.inner.trained.target.w)  # noqa: E731
    return eqx.tree_at(where, state, (w, w + 0.0))


def with_rewards(state, rewards=WIDE):
    return eqx.tree_at(lambda s: s.model.rewards, state, rewards)


def with_target(state, change):
    net = state.model.inner.trained.target
    changed = eqx.tree_at(lambda net: net.w, jax.tree.map(change, net), net.w)
    return eqx.tree_at(lambda s: s.model.inner.trained.target, state, changed)


def alive(data):
    return np.asarray(data.discount) * (1 - np.asarray(data.terminated))


def test_options_name_the_parts_that_they_say():
    assert SUPlus().reference() == Optimistic()
    assert SUPlus(policy="joint", policy_samples=7).reference() == Joint(7)
    assert SUPlus(q_weight=3.0, q_per_w=True).objective() == Weighted(3.0, True, False)
    assert SUPlus(q_trains_w=True).objective() == Weighted(10.0, False, True)
    assert isinstance(begun(SUPlus(), SPEC).model, Novelty)
    assert isinstance(begun(NET).model, Bounded)


def test_the_schedule_is_what_the_options_say():
    options = {"gradient_steps": 3, "train_every": 4, "warmup": 5, "envs": 2, "redraw_every": 6}
    drawn = {"batch_size": 7, "replay_capacity": 8, "replay": "prioritised(0.5)", "n_step": 3}
    agent = SUPlus(**options, **drawn, discount=0.5)
    assert agent.schedule == Schedule(3, 4, 5, 2, 6, 7, 8, "prioritised(0.5)", 3, 0.5)


def test_table_targets_by_hand():
    agent = dataclasses.replace(TABLE, discount=0.5)
    state = begun(agent, SPEC)
    psi = np.zeros((4, 2, 3), np.float32)
    psi[1] = [[4.0, 0, 0], [0, 1.0, 0]]
    packed = state.model.inner.rows.packed.at[:, :6].set(psi.reshape(4, -1))
    places = lambda s: (s.model.inner.rows.packed, s.model.inner.shared.w)  # noqa: E731
    state = eqx.tree_at(places, state, (packed, jnp.array([0.0, 3.0, 0.0])))
    data = transition([0, 0], [0, 1], [0.0, 1.0], [1, 1], [False, True])
    # Means 0 and 3, deviations 4√θ and √θ: optimism takes the first of 4 and 4 with ties, so
    # θ is a little larger than one; the target of Q is the best mean.
    state = eqx.tree_at(lambda s: s.posterior.R, state, jnp.eye(3) * 0.99)
    found = jax.jit(agent.targets)(state, data, jax.random.key(0))
    np.testing.assert_allclose(found.psi, [[2.0, 0, 0], [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(found.q, [1.5, 0.0], atol=1e-6)


def test_an_untried_action_has_mean_zero_and_the_prior_s_variance():
    agent = SUPlus(features=6, novelty=4, theta=2.0, beta=0.1, batch_size=100)
    state = begun(agent, SPEC)
    seen = transition([0, 1], [0, 0], [0.0, 1.0], [1, 2], [False, True])
    state = jax.jit(agent.observe)(state, seen, jnp.ones(2, bool))
    learn = jax.jit(agent.learn)
    for i in range(20):
        state, _ = learn(state, seen, jax.random.key(i))
    belief = jax.jit(agent.q_posterior)(state, jnp.array([0]))
    np.testing.assert_array_equal(belief.mean[0, 1], 0)
    assert float(belief.covariance[1, 1]) == pytest.approx(4 * 2.0, rel=1e-4)


def test_learning_brings_reward_successor_and_q_where_they_belong():
    """Two states in a row, reward one at the end: r̂ → r, ψ → φ + γψ', Q → γ and 1."""
    agent = dataclasses.replace(
        TABLE, novelty=1, features=6, discount=0.9, learning_rate=1e-2, policy="joint"
    )
    data = transition([0, 1], [0, 0], [0.0, 1.0], [1, 2], [False, True])

    @jax.jit
    def trained(key):
        def step(state, key):
            state, update = agent.learn(state, data, key)
            return state, update.metrics

        return jax.lax.scan(step, agent.init(SPEC, key), jax.random.split(key, 4000))

    state, metrics = trained(jax.random.key(0))
    q = agent.q(state, agent.greedy(state), jnp.arange(2))
    # The successor loss averages over π, which still tries the unseen action, and pulls a little.
    np.testing.assert_allclose(q[:, 0], [0.9, 1.0], atol=0.1)
    assert float(metrics["reward_loss"][-1]) < 1e-3
    # Action 1 was never taken: its mean Q is still that of the prior.
    np.testing.assert_allclose(q[:, 1], [0.0, 0.0], atol=1e-6)


def test_novelty_features_alone_follow_the_successor_loss_where_that_is_asked_for():
    """Before any reward ŵ is zero: what ψ has in the known features does not move."""
    agent = dataclasses.replace(
        TABLE, features=6, novelty=2, novelty_step=0.25, successor_trains="novelty", discount=1.0,
        learning_rate=1e-2,
    )  # fmt: skip
    state = begun(agent, SPEC)
    np.testing.assert_array_equal(state.model.psi(jnp.int32(0))[0], [1, 1, 0, 0, 0, 0])
    data = transition([0, 0], [0, 0], [0.0, 0.0], [1, 1], [True, True])
    learn = jax.jit(agent.learn)
    other_agent = dataclasses.replace(agent, successor_trains="all")
    everything, other = jax.jit(other_agent.learn), begun(other_agent, SPEC)
    for i in range(300):
        state, _ = learn(state, data, jax.random.key(i))
        other, _ = everything(other, data, jax.random.key(i))
    # The episode ends here, so that ψ comes to what φ itself has: 0.25 in each novelty feature.
    psi = state.model.psi(jnp.int32(0))[0]
    np.testing.assert_allclose(psi[:2], 0.25, atol=0.01)
    np.testing.assert_array_equal(psi[2:], 0.0)
    phi = np.asarray(other.model.phi(data.obs, data.action))[0]
    np.testing.assert_allclose(other.model.psi(jnp.int32(0))[0], phi, atol=0.05)
    assert np.linalg.norm(phi[2:]) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize(("name", "where"), [("value_eps", slice(1, 3)), ("novelty_eps", slice(1))])
def test_each_epsilon_is_that_of_its_own_features(name, where):
    """With ε of 1e6 the first step of Adam moves nothing that anyone would notice."""
    agent = dataclasses.replace(TABLE, novelty=1, novelty_step=0.5, **{name: 1e6})
    state = begun(agent, SPEC)
    data = transition([0], [0], [1.0], [1], [True])
    after, _ = jax.jit(agent.learn)(state, data, jax.random.key(0))
    moved = np.abs(np.asarray(after.model.psi(jnp.int32(0)) - state.model.psi(jnp.int32(0))))[0]
    still = np.zeros(3, bool)
    still[where] = True
    assert np.all(moved[still] < 1e-8)
    assert np.all(moved[~still] > 1e-5)


def test_n_step_targets_by_hand():
    """ψ is to become φ₀ + γφ₁ + γ²E[ψ₂], and Q the discounted rewards and γ² max Q₂."""
    agent = dataclasses.replace(OPTIMISTIC, n_step=2)
    state = with_rewards(with_w(begun(agent), jnp.arange(5.0)))
    trail = Trail(
        observations(VECTOR, 8, 7)[:, None], jnp.zeros((8, 1), jnp.int32),
        jnp.where(jnp.arange(8)[:, None] < 4, 0.9, 0.0), jnp.ones(8),
    )  # fmt: skip
    data = batch(VECTOR, trail=trail)
    data = dataclasses.replace(data, discount=jnp.where(jnp.arange(8) < 4, 0.81, 0.9))
    found = jax.jit(agent.targets)(state, data, jax.random.key(0))
    psi = np.asarray(state.model.target_psi(data.next_obs))
    q = psi @ np.arange(5.0)
    deviation = np.sqrt(np.asarray(state.posterior.variance(jnp.asarray(psi))))
    chosen = psi[np.arange(8), np.argmax(q + deviation, axis=1)]
    phi = np.asarray(state.model.phi(trail.obs, trail.action))[:, 0]
    expected = alive(data)[:, None] * chosen + np.asarray(trail.discount) * phi
    np.testing.assert_allclose(found.psi, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.q, alive(data) * q.max(1), rtol=1e-4, atol=1e-5)


def test_one_step_between_stands_for_all_on_average():
    """Steps are drawn by their discounts, count for all of them, and never come from beyond the
    end of an episode."""
    gamma = jnp.array([[0.9, 0.81, 0.729], [0.9, 0.81, 0.0], [0.0, 0.0, 0.0]])
    obs = jnp.arange(9.0).reshape(3, 3, 1)
    trail = Trail(obs, jnp.arange(9).reshape(3, 3), gamma, jnp.ones(3))
    drawn = jax.jit(jax.vmap(lambda key: one_step(trail, key)))(
        jax.random.split(jax.random.key(0), 9000)
    )
    np.testing.assert_array_equal(drawn.obs[..., 0], drawn.action)
    np.testing.assert_allclose(drawn.discount[0, :, 0], gamma.sum(1), rtol=1e-6)
    assert np.all(np.asarray(drawn.action)[:, 1] < 5)
    mean = np.mean(np.asarray(drawn.discount * drawn.obs[..., 0]), axis=0)[:, 0]
    np.testing.assert_allclose(mean, np.sum(gamma * obs[..., 0], axis=1), atol=0.1)


def test_with_one_step_between_both_ways_are_the_same():
    agent = dataclasses.replace(NET, n_step=2)
    trail = Trail(
        observations(VECTOR, 8, 7)[:, None], jnp.zeros((8, 1), jnp.int32),
        jnp.full((8, 1), 0.9), jnp.ones(8),
    )  # fmt: skip
    data = dataclasses.replace(batch(VECTOR), trail=trail, discount=jnp.full(8, 0.81))
    both = [
        jax.jit(dataclasses.replace(agent, between=between).targets)(
            begun(agent), data, jax.random.key(0)
        )
        for between in ("all", "one")
    ]
    np.testing.assert_allclose(*[found.psi for found in both], rtol=1e-5, atol=1e-6)


def test_the_double_target_chooses_with_one_network_and_values_with_the_other():
    agent = dataclasses.replace(OPTIMISTIC, q_target="double")
    state = with_rewards(with_w(begun(agent), jnp.arange(5.0) - 2))
    data, w = batch(VECTOR), np.arange(5.0) - 2
    learning = np.asarray(state.model.psi(data.next_obs)) @ w
    state = with_target(state, lambda x: -x)
    valued = np.asarray(state.model.target_psi(data.next_obs)) @ w
    assert np.any(learning.argmax(1) != valued.argmax(1))
    found = jax.jit(agent.targets)(state, data, jax.random.key(0))
    expected = alive(data) * valued[np.arange(8), learning.argmax(1)]
    np.testing.assert_allclose(found.q, expected, rtol=1e-4, atol=1e-4)


def test_successor_targets_stay_within_what_features_of_norm_one_can_add_up_to():
    agent = dataclasses.replace(OPTIMISTIC, discount=0.9)
    state = with_target(begun(agent), lambda x: 1e3 * x)
    data = dataclasses.replace(batch(VECTOR), terminated=jnp.zeros(8, bool))
    found = jax.jit(agent.targets)(state, data, jax.random.key(0))
    longest = float(jnp.max(jnp.linalg.norm(found.psi, axis=1)))
    assert longest == pytest.approx(0.9 / (1 - 0.9), rel=1e-4)


def test_q_targets_stay_within_what_the_rewards_so_far_can_add_up_to():
    agent = dataclasses.replace(NET, discount=0.9)
    state, w = begun(agent), 1e3 * (jnp.arange(5.0) - 2)
    data = dataclasses.replace(batch(VECTOR), terminated=jnp.zeros(8, bool))
    one = jax.tree.map(lambda x: x[:2], data)
    seen = dataclasses.replace(one, reward=jnp.array([-1.0, 7.0]))
    targets = jax.jit(agent.targets)
    for mask, bounds in (((True, False), (-9.0, 0.0)), ((True, True), (-9.0, 63.0))):
        now = jax.jit(agent.observe)(state, seen, jnp.array(mask))
        found = [targets(with_w(now, sign * w), data, jax.random.key(0)).q for sign in (1, -1)]
        found = jnp.concatenate(found)
        assert (float(found.min()), float(found.max())) == pytest.approx(bounds, rel=1e-4)


@pytest.mark.parametrize(("w", "weight"), [(0.5, 1 / 4.0), (0.01, 100.0)])
def test_the_q_loss_can_be_counted_in_units_of_features(w, weight):
    """Divided by ‖ŵ‖², here 16 w², or by 0.01 where that is less."""
    plain = dataclasses.replace(NET, hidden=8, features=16, q_per_w=False)
    state = with_w(begun(plain), jnp.full(16, w))
    steps = [
        jax.jit(dataclasses.replace(plain, **change).learn)(
            state, batch(VECTOR), jax.random.key(1)
        )[0]
        for change in ({"q_per_w": True, "q_weight": 1.0}, {"q_weight": weight})
    ]
    for a, b in zip(*map(jax.tree.leaves, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_random_features_are_part_of_phi_and_learning_leaves_them_alone():
    agent = dataclasses.replace(NET, features=12, random_features=8, random_scale=2.0)
    state, data = begun(agent), batch(VECTOR)
    phi = np.asarray(state.model.phi(data.obs, data.action))
    waves = np.asarray(state.model.inner.waves(data.obs, data.action))
    np.testing.assert_allclose(phi[:, 4:], waves * 0.5**0.5, rtol=1e-5)
    learnt, _ = jax.jit(agent.learn)(state, data, jax.random.key(1))
    after = np.asarray(learnt.model.phi(data.obs, data.action))
    np.testing.assert_array_equal(after[:, 4:], phi[:, 4:])
    assert np.any(after[:, :4] != phi[:, :4])
