"""The exact model of section 4, by hand and against linear algebra in float64."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.agents.ideal_su import IdealSU
from surveyor.paper.propositions import explored
from tests.common import filled


def test_successor_features_solve_their_bellman_equation():
    agent, state = explored(size=4, episodes=30, rng=np.random.default_rng(0))
    n, actions = state.policy.shape
    P = np.zeros((n * actions, n * actions))
    for s in range(n):
        for a in range(actions):
            following = int(state.model.successor[s, a, 0])
            if 0 <= following < n:
                P[s * actions + a, following * actions : (following + 1) * actions] = 0.5
    psi = np.linalg.inv(np.eye(n * actions) - P)
    rows = agent.successor_features(state, jnp.arange(n))
    np.testing.assert_allclose(rows, psi, atol=1e-5)
    nu = 1 / (1 / agent.theta + np.asarray(state.model.visits, float).ravel() / agent.beta)
    belief = agent.q_posterior(state, jnp.arange(n))
    np.testing.assert_allclose(belief.covariance, psi @ np.diag(nu) @ psi.T, rtol=1e-4, atol=1e-6)


def test_variance_by_hand():
    agent = IdealSU(theta=4.0, beta=2.0)
    _, state = explored(size=2, episodes=0, rng=np.random.default_rng(0))
    assert np.all(np.asarray(agent.variance(state)) == 4.0)
    model = state.model
    visited = type(model)(
        model.successor, model.count, model.visits.at[0, 1].set(3.0), model.reward
    )
    state = type(state)(visited, state.horizon, state.policy)
    np.testing.assert_allclose(agent.variance(state)[0], [4.0, 1 / (0.25 + 1.5)], rtol=1e-6)


def test_the_reference_policy_is_the_share_of_samples_that_prefer_an_action():
    agent, state = explored(size=3, episodes=20, rng=np.random.default_rng(1))
    new, _ = agent.learn(state, filled(0, 0, 0.0, 1, False, b=1), jax.random.key(0))
    policy = np.asarray(new.policy)
    np.testing.assert_allclose(policy.sum(1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(policy * 20, np.round(policy * 20), atol=1e-4)
