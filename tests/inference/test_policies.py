"""Reference policies against probabilities in closed form and against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from surveyor.inference.policies import (
    Joint,
    Marginal,
    PerExample,
    ReferencePolicy,
    entropy,
    greedy_policy,
)
from surveyor.inference.posterior import Posterior
from tests.common import compiled

PSI = jnp.array([[[1.0, 0, 0], [0, 0, 0]], [[1.0, 0, 0], [1.0, 0, 0]], [[1.0, 0, 0], [-1.0, 0, 0]]])
Q = jnp.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
POSTERIOR = Posterior.prior(3, 1.0, 1.0)
KEY = jax.random.key(0)


def test_greedy_probabilities_share_ties():
    q = jnp.array([[1.0, 3.0, 3.0], [2.0, 0.0, -1.0]])
    np.testing.assert_allclose(greedy_policy(q), [[0, 0.5, 0.5], [1, 0, 0]])
    np.testing.assert_allclose(greedy_policy(q.T, 0), greedy_policy(q).T)


@pytest.mark.parametrize("kind", [Joint, Marginal])
def test_probabilities_add_up_to_one_however_xla_rounds_q(kind):
    """XLA may compute Q once for the maximum and again beside it, and round it in two ways."""
    psi, q = jax.random.normal(KEY, (100, 2, 3)), jax.random.normal(KEY, (100, 2))
    policy = jax.jit(lambda psi, q: kind(20, 1e-3)(POSTERIOR, psi, q, KEY))
    np.testing.assert_allclose(np.sum(policy(psi, q), axis=1), 1.0, rtol=1e-6)


def test_entropy_is_zero_for_one_action_and_log_n_for_all():
    policy = jnp.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(entropy(policy), [0.0, np.log(3)], rtol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("kind", [Joint, Marginal])
def test_sampled_policies_are_the_probability_of_being_greedy(kind, scale):
    """Q₀ ~ N(0, σ²) against 1; against itself; and against 1 - Q₀ or an independent N(1, σ²)."""
    pi = compiled(kind(20_000, scale))(POSTERIOR, PSI, Q, KEY)
    np.testing.assert_allclose(np.sum(pi, axis=1), 1.0, rtol=1e-5)
    assert pi[0, 0] == pytest.approx(norm.sf(1 / scale), abs=0.01)
    assert pi[1, 0] == pytest.approx(0.5, abs=0.01)  # ties are shared
    spread = 2 * scale if kind is Joint else 2**0.5 * scale
    assert pi[2, 0] == pytest.approx(norm.sf(1 / spread), abs=0.01)


def test_joint_draws_are_shared_by_all_states():
    """The same ψ and Q in every state: one draw of w makes all of them choose alike."""
    psi, q = jnp.tile(PSI[:1], (50, 1, 1)), jnp.zeros((50, 2))
    joint, alone = (compiled(pi)(POSTERIOR, psi, q, KEY) for pi in (Joint(1), PerExample()))
    assert len(np.unique(joint[:, 0])) == 1
    assert len(np.unique(alone[:, 0])) == 2


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_algorithm_1_draws_one_w_for_each_example(scale):
    """a' = argmax ⟨ψ, ŵ + scale · R⁻¹ε⟩ with an ε of its own for each state, in float64."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 4)).astype(np.float32)
    posterior = Posterior.prior(4, 2.0, 0.5).update(jnp.asarray(rows))
    psi, w = rng.standard_normal((200, 3, 4)), rng.standard_normal(4)
    single = jnp.asarray(psi, jnp.float32)
    pi = compiled(PerExample(scale))(posterior, single, single @ jnp.asarray(w, jnp.float32), KEY)
    noise = np.asarray(jax.random.normal(KEY, (4, 200)), np.float64)
    deviation = np.linalg.solve(np.asarray(posterior.R, np.float64), noise).T
    q = np.einsum("bad,bd->ba", psi, w + scale * deviation)
    np.testing.assert_array_equal(pi, np.eye(3)[q.argmax(1)])


def test_draws_for_each_example_have_the_probability_of_being_greedy():
    psi, q = jnp.tile(PSI[2:], (20_000, 1, 1)), jnp.tile(Q[2:], (20_000, 1))
    pi = compiled(PerExample())(POSTERIOR, psi, q, KEY)
    assert np.mean(pi[:, 0]) == pytest.approx(norm.sf(0.5), abs=0.01)


@pytest.mark.parametrize("policy", [Joint(2), Marginal(2), PerExample()])
def test_every_policy_follows_the_protocol(policy):
    assert isinstance(policy, ReferencePolicy)
    np.testing.assert_allclose(np.sum(compiled(policy)(POSTERIOR, PSI, Q, KEY), axis=1), 1.0)
