"""PSRL's posterior by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.agents.psrl import PSRL
from surveyor.types import EnvSpec, Transition
from tests.common import begun

SPEC = EnvSpec(num_states=3, num_actions=2, horizon=3)


def once(s, a, r, following, ended):
    def integer(x):
        return jnp.array([x], jnp.int32)

    return Transition(
        integer(s), integer(a), jnp.array([r]), integer(following), jnp.array([ended])
    )


def seen(agent, *rows):
    state = begun(agent, SPEC)
    for row in rows:
        state = jax.jit(agent.observe)(state, once(*row), jnp.ones(1, bool))
    return state


def test_the_greedy_table_is_the_mean_mdp_solved():
    agent = PSRL(theta=2.0, beta=0.5, alpha=1.0)
    state = seen(agent, (0, 0, 1.0, 1, False), (1, 1, 3.0, 0, True))
    # Mean rewards θ/(θ + β) r = 0.8 r; the successor seen once has probability 1/(1 + α) = 1/2.
    q = np.asarray(agent.greedy(state))
    np.testing.assert_allclose(q[1], [0.0, 2.4], rtol=1e-5)
    np.testing.assert_allclose(q[0], [0.8 + 0.5 * 2.4, 0.0], rtol=1e-5)


def test_sampled_rewards_have_the_posterior_s_mean_and_variance():
    agent = PSRL(theta=2.0, beta=0.5)
    state = seen(agent, (2, 0, 3.0, 0, True))
    keys = jax.random.split(jax.random.key(1), 20_000)
    draws = np.asarray(jax.vmap(lambda key: agent.sample(state, key)[2])(keys), float)
    np.testing.assert_allclose(draws.mean(0), [2.4, 0.0], atol=0.05)
    np.testing.assert_allclose(draws.var(0), [0.4, 2.0], rtol=0.05)


def test_sampled_transitions_are_dirichlet():
    agent = PSRL(theta=1.0, beta=1e-9, alpha=2.0)
    rows = [(0, 0, 0.0, 1, False)] * 3 + [(0, 0, 0.0, 2, False)] + [(2, 0, 1.0, 0, True)] * 5
    state = seen(agent, *rows, (1, 0, 0.0, 0, True), (1, 1, 0.0, 0, True), (2, 1, 0.0, 0, True))
    # With rewards all but known, Q(0, 0) is the probability of 2, which is Beta(1, 3 + 2).
    keys = jax.random.split(jax.random.key(2), 20_000)
    draws = np.asarray(jax.vmap(lambda key: agent.sample(state, key)[0, 0])(keys), float)
    np.testing.assert_allclose(draws.mean(), 1 / 6, atol=0.005)
    np.testing.assert_allclose(draws.var(), 5 / (36 * 7), rtol=0.05)
