"""SU's own mathematics."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor import SU, SurveyorError
from surveyor.types import Batch, EnvSpec

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=4)
SMALL = SU(
    features=3, novelty=0, successor_trains="all", batch_size=2, recent=0, best=0, gradient_steps=1
)


def transition(obs, action, reward, next_obs, terminated):
    return Batch(
        jnp.array(obs), jnp.array(action), jnp.array(reward), jnp.array(next_obs),
        jnp.array(terminated), jnp.arange(len(obs)),
    )  # fmt: skip


def with_psi(state, psi):
    """Put ψ(s, a) into the table: an array of states × actions × features."""
    flat = jnp.asarray(psi, jnp.float32).reshape(4, -1)
    packed = state.model.rows.packed.at[:, :6].set(flat)
    return eqx.tree_at(lambda s: s.model.rows.packed, state, packed)


def with_w(state, w):
    return eqx.tree_at(lambda s: s.model.shared.w, state, jnp.array(w))


@pytest.fixture
def state():
    return SMALL.init(SPEC, jax.random.key(0))


def test_q_is_the_inner_product_of_psi_and_w(state):
    psi = np.arange(24.0).reshape(4, 2, 3)
    state, w = with_psi(state, psi), jnp.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(SMALL.q(state, w, jnp.arange(4)), psi @ np.asarray(w))


def test_q_posterior_is_equation_3(state):
    psi = np.random.default_rng(0).standard_normal((4, 2, 3))
    state = with_w(with_psi(state, psi), [1.0, 2.0, 3.0])
    seen = transition([0, 1, 2], [0, 1, 0], [0.0, 1.0, 0.0], [1, 2, 3], [False, False, True])
    state = SMALL.observe(state, seen, jnp.array([True, True, False]))
    belief = SMALL.q_posterior(state, jnp.array([2, 0]))
    Psi = psi[[2, 0]].reshape(4, 3)
    np.testing.assert_allclose(belief.mean.reshape(-1), Psi @ [1, 2, 3], rtol=1e-5)
    covariance = Psi @ np.asarray(state.posterior.covariance, np.float64) @ Psi.T
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-4, atol=1e-5)
    # An unmasked row has shrunk the variance; the masked one has not counted.
    again = SMALL.observe(state, seen, jnp.array([False, False, True]))
    assert np.trace(again.posterior.covariance) < np.trace(state.posterior.covariance)


def test_targets_by_hand(state):
    agent = dataclasses.replace(SMALL, discount=0.5, q_target="max")
    psi = np.zeros((4, 2, 3))
    psi[1] = [[4.0, 0, 0], [0, 1.0, 0]]
    state = with_w(with_psi(state, psi), [1.0, 1.0, 0])
    batch = transition([0, 0], [0, 1], [0.0, 1.0], [1, 1], [False, True])
    # Means 4 and 1, deviations 4√θ and √θ: the optimistic policy takes the first action.
    next_psi, next_q = agent._targets(state, batch, jax.random.key(0))
    np.testing.assert_allclose(next_psi, [[2.0, 0, 0], [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(next_q, [2.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("policy", ["joint", "marginal"])
def test_the_reference_policy_is_the_probability_of_being_greedy(state, policy):
    """Q₀ ~ N(0, 1) against Q₁ = 1, and against an independent N(0, 1) where asked for."""
    agent = dataclasses.replace(SMALL, policy=policy, policy_samples=20_000, theta=1.0)
    psi = jnp.array(
        [[[1.0, 0, 0], [0, 0, 0]], [[1.0, 0, 0], [1.0, 0, 0]], [[1.0, 0, 0], [-1, 0, 0]]]
    )
    q = jnp.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    pi = agent._reference_policy(state, psi, q, jax.random.key(0))
    np.testing.assert_allclose(np.sum(pi, axis=1), 1.0, rtol=1e-5)
    assert pi[0, 0] == pytest.approx(0.1587, abs=0.01)  # P(z > 1)
    assert pi[1, 0] == pytest.approx(0.5, abs=0.01)  # ties are shared
    joint, independent = 0.3085, 0.2398  # P(2z > 1), P(√2 z > 1)
    assert pi[2, 0] == pytest.approx(joint if policy == "joint" else independent, abs=0.01)


def test_learning_brings_reward_successor_and_q_where_they_belong():
    """Two states in a row, reward one at the end: r̂ → r, ψ → φ + γψ', Q → γ and 1."""
    agent = dataclasses.replace(
        SMALL, novelty=1, features=6, discount=0.9, learning_rate=1e-2, policy="joint"
    )
    state = agent.init(SPEC, jax.random.key(0))
    batch = transition([0, 1], [0, 0], [0.0, 1.0], [1, 2], [False, True])
    learn = jax.jit(agent.learn)
    for i in range(4000):
        state, metrics = learn(state, batch, jax.random.key(i))
    q = agent.q(state, agent.greedy(state), jnp.arange(2))[:, 0]
    # The successor loss averages over π, which still tries the unseen action, and pulls a little.
    np.testing.assert_allclose(q, [0.9, 1.0], atol=0.1)
    assert float(metrics["reward_loss"]) < 1e-3
    # Action 1 was never taken: its mean Q is still that of the prior.
    unseen = agent.q(state, agent.greedy(state), jnp.arange(2))[:, 1]
    np.testing.assert_allclose(unseen, [0.0, 0.0], atol=1e-6)


def test_options_change_what_they_say():
    """Each source's choice is in effect: gradients reach, or do not reach, what they should."""
    batch = transition([0, 1], [0, 1], [1.0, 0.5], [1, 2], [False, True])
    psi = np.random.default_rng(1).uniform(size=(4, 2, 3))

    def change(**options):
        agent = dataclasses.replace(SMALL, **options)
        state = with_w(with_psi(agent.init(SPEC, jax.random.key(0)), psi), [1.0, -1.0, 0.5])
        after, _ = agent.learn(state, batch, jax.random.key(0))
        return after

    reference = change()
    for options in (
        {"q_trains_w": True}, {"successor_trains_phi": True}, {"loss": "squared"},
        {"feature_reduction": "sum"}, {"normalise": False}, {"q_weight": 1.0}, {"discount": 0.5},
        {"q_target": "policy", "policy": "marginal"}, {"value_eps": 1e-8},
    ):  # fmt: skip
        # The moments see a gradient's size where Adam's first step shows only its sign.
        pairs = zip(jax.tree.leaves(change(**options)), jax.tree.leaves(reference), strict=True)
        assert max(float(jnp.abs(a - b).max()) for a, b in pairs) > 1e-9, options


def test_novelty_features_alone_follow_the_successor_loss_where_that_is_asked_for():
    """Before any reward ŵ is zero: what ψ has in the known features does not move."""
    agent = dataclasses.replace(
        SMALL, features=6, novelty=2, novelty_step=0.25, successor_trains="novelty", discount=1.0,
        learning_rate=1e-2,
    )  # fmt: skip
    state = agent.init(SPEC, jax.random.key(0))
    np.testing.assert_array_equal(state.model.psi(jnp.int32(0))[0], [1, 1, 0, 0, 0, 0])
    batch = transition([0, 0], [0, 0], [0.0, 0.0], [1, 1], [True, True])
    learn = jax.jit(agent.learn)
    everything = jax.jit(dataclasses.replace(agent, successor_trains="all").learn)
    other = state
    for i in range(300):
        state, _ = learn(state, batch, jax.random.key(i))
        other, _ = everything(other, batch, jax.random.key(i))
    # The episode ends here, so that ψ comes to what φ itself has: 0.25 in each novelty feature.
    psi = state.model.psi(jnp.int32(0))[0]
    np.testing.assert_allclose(psi[:2], 0.25, atol=0.01)
    np.testing.assert_array_equal(psi[2:], 0.0)
    assert float(jnp.max(other.model.rows.packed[0, 2:6])) > 0.01


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"theta": 0.0}, "theta must be a positive number, not 0."),
        ({"theta": -1.0}, "theta must be a positive number, not -1."),
        ({"beta": float("nan")}, "beta must be a positive number, not nan."),
        ({"beta": float("inf")}, "beta must be a positive number, not inf."),
        ({"theta": 1e-50}, "theta must be between 1e-30 and 1e30, not 1e-50."),
        ({"zeta": 1.1}, "zeta must be above 0 and at most 1, not 1.1."),
        ({"discount": 0.0}, "discount must be above 0 and at most 1, not 0."),
        ({"features": 0}, "features must be at least 1, not 0."),
        ({"novelty": 20}, "novelty must be from 0 to features - 1 = 19, not 20."),
        (
            {"recent": 101},
            "recent and best together must be at most batch_size = 100, not 121.",
        ),
        ({"best": -1}, "best must be at least 0, not -1."),
        ({"novelty_step": -0.1}, "novelty_step must be at least 0, not -0.1."),
        (
            {"novelty": 0},
            "successor_trains must be all where there are no novelty features.",
        ),
        ({"gradient_steps": -1}, "gradient_steps must be at least 0, not -1."),
    ],
)
def test_bad_hyperparameters_are_refused_in_one_sentence(options, sentence):
    with pytest.raises(SurveyorError) as error:
        SU(**options)
    assert str(error.value) == sentence
