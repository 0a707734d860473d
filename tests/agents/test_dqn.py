"""DQN: ε-greedy actions and targets of Q learning, with numbers worked out by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.agents.dqn import DQN
from surveyor.types import EnvSpec
from tests.common import VECTOR, batch, begun, filled, learn

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=3)


def test_epsilon_falls_in_a_straight_line_with_the_steps_seen():
    agent = DQN(epsilon_start=1.0, epsilon_end=0.2, epsilon_steps=100)
    state = begun(agent, SPEC)
    assert agent.epsilon(state) == 1.0
    state = jax.jit(agent.observe)(state, filled(0, 0, 0.0, 1, False), jnp.arange(100) < 25)
    np.testing.assert_allclose(agent.epsilon(state), 0.8, rtol=1e-6)
    for _ in range(5):
        state = jax.jit(agent.observe)(state, filled(0, 0, 0.0, 1, False), jnp.ones(100, bool))
    np.testing.assert_allclose(agent.epsilon(state), 0.2, rtol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_epsilon_greedy_takes_a_random_action_with_probability_epsilon(epsilon):
    agent, key = DQN(epsilon_start=epsilon), jax.random.key(0)
    state = agent.init(SPEC, key)
    obs = jnp.zeros((), jnp.int32)
    greedy = jax.jit(agent.act)(state, agent.greedy(state), obs, jnp.array([0.99, 0.98]))
    best = int(jnp.argmax(agent.q(state, jnp.zeros(()), obs)))
    u = jax.random.uniform(jax.random.key(1), (20_000, 2))
    act = jax.jit(jax.vmap(lambda u: agent.act(state, agent.sample(state, key), obs, u)))
    assert abs(float(jnp.mean(act(u) == best)) - (1 - epsilon / 2)) < 0.012
    assert int(greedy) == best


def test_dqn_learns_the_reward_and_the_discounted_value_behind_it():
    agent = DQN(discount=0.5, learning_rate=0.02)
    state = begun(agent, SPEC)
    state = learn(agent, state, filled(1, 0, 2.0, 3, True), 300)
    state = learn(agent, state, filled(1, 1, 1.0, 3, True), 300)
    state = learn(agent, state, filled(0, 1, 0.25, 1, False), 200)
    q = agent.q(state, jnp.zeros(()), jnp.arange(2))
    best = float(jnp.max(q[1]))
    assert best > 1
    np.testing.assert_allclose(q[0, 1], 0.25 + 0.5 * best, atol=0.05)


FIRST = np.float32([[0.0, 0.0], [3.0, 1.0]])
SECOND = np.float32([[0.0, 0.0], [10.0, 20.0]])
"""Q tables of the two heads at states 0 and 1."""


def with_tables(state, *tables):
    """Return a state whose heads have these Q values: one hidden unit for each state."""
    network, heads = state.network, len(tables)
    width = network.hidden.width
    hidden = np.zeros((4, heads, width), np.float32)
    hidden[np.arange(4), :, np.arange(4)] = 1.0
    W = np.zeros((heads, width, 2), np.float32)
    for k, table in enumerate(tables):
        W[k, : len(table)] = table
    shared = np.concatenate([np.zeros((heads, width)), W.reshape(heads, -1)], axis=1)
    places = lambda s: (s.network.hidden.packed, s.network.shared.packed)  # noqa: E731
    packed = (
        network.hidden.packed.at[:, :width].set(hidden.reshape(-1, width)),
        network.shared.packed.at[:, : shared.shape[1]].set(shared),
    )
    return eqx.tree_at(places, state, packed)


@pytest.mark.parametrize("seed", range(4))
def test_double_q_learning_values_with_one_table_what_the_other_chooses(seed):
    """From Q = 0 to state 1 with r = 0.5 and γ = ½. The first head would choose action 0, which
    the second values 10: 5.5; the second chooses action 1, which the first values 1: 1.0. A
    single table takes its own best: 2.0."""
    data = filled(0, 0, 0.5, 1, False, b=3)
    options = {"discount": 0.5, "loss": "squared", "hidden": 4, "batch_size": 3}
    double = DQN(double=True, **options)
    state = with_tables(begun(double, SPEC), FIRST, SECOND)
    np.testing.assert_allclose(state.network.q(jnp.int32(1)), [FIRST[1], SECOND[1]])
    learnt, update = jax.jit(double.learn)(state, data, jax.random.key(seed))
    trained = int(np.argmax(learnt.network.steps))
    np.testing.assert_allclose(update.errors, [-5.5, -1.0][trained], rtol=1e-5)
    assert learnt.network.steps.tolist() == [int(trained == 0), int(trained == 1)]
    single = DQN(**options)
    state = with_tables(begun(single, SPEC), FIRST)
    _, update = jax.jit(single.learn)(state, data, jax.random.key(seed))
    np.testing.assert_allclose(update.errors, -2.0, rtol=1e-5)


def test_double_q_learning_trains_either_table():
    agent = DQN(double=True, learning_rate=0.02)
    state = begun(agent, SPEC)
    state = learn(agent, state, filled(2, 0, 1.0, 3, True), 400)
    np.testing.assert_allclose(agent.q(state, jnp.zeros(()), jnp.int32(2))[0], 1.0, atol=0.05)
    assert np.all(np.asarray(state.network.steps) > 100)


@pytest.mark.parametrize("double", [False, True])
def test_double_dqn_chooses_with_one_network_and_values_with_the_other(double):
    agent = DQN(hidden=16, loss="squared", double=double, train_every=1)
    state, data = begun(agent), batch(VECTOR)
    other = jax.tree.map(lambda x: -x, state.network.trained.net)
    state = eqx.tree_at(lambda s: s.network.trained.target, state, other)
    network = state.network
    valued, online = (np.asarray(f(data.next_obs))[:, 0] for f in (network.target_q, network.q))
    assert np.any(valued.argmax(1) != online.argmax(1))
    value = valued[np.arange(8), (online if double else valued).argmax(1)]
    target = np.asarray(data.reward) + 0.9 * (1 - np.asarray(data.terminated)) * value
    q = np.asarray(network.q(data.obs))[np.arange(8), 0, np.asarray(data.action)]
    _, update = jax.jit(agent.learn)(state, data, jax.random.key(0))
    np.testing.assert_allclose(update.errors, q - target, rtol=1e-3, atol=1e-5)
    assert float(update.metrics["q_loss"]) == pytest.approx(np.mean((q - target) ** 2), rel=1e-3)
