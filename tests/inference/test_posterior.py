"""The posterior against a float64 NumPy reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surveyor.inference.posterior import DECAYED_FLOOR, PANEL, ActionPosteriors, Posterior


class Reference:
    """Λ and b in float64, updated row by row as the paper writes it."""

    def __init__(self, d, theta, beta, zeta):
        self.precision = np.eye(d) / theta
        self.information = np.zeros(d)
        self.beta, self.zeta = beta, zeta

    def update(self, features, targets):
        for phi, r in zip(features.astype(np.float64), targets.astype(np.float64), strict=True):
            self.precision = self.zeta * self.precision + np.outer(phi, phi) / self.beta
            self.information = self.zeta * self.information + phi * r / self.beta

    @property
    def covariance(self):
        return np.linalg.inv(self.precision)

    @property
    def mean(self):
        return np.linalg.solve(self.precision, self.information)


def unit_rows(rng, n, d, spread):
    """Non-negative unit rows around one direction; a small spread makes them nearly parallel."""
    rows = np.abs(1 + spread * rng.standard_normal((n, d)))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def tolerance(theta, beta, n):
    """What float32 can promise: each row's rounding is itself a little false information."""
    return 2e-3 + 50 * n * theta / beta * np.finfo(np.float32).eps ** 2


def assert_positive_definite(posterior):
    """R is regular, and so Σ = R⁻¹R⁻ᵀ is positive definite, as far as float32 can write it down."""
    assert np.all(np.abs(np.diagonal(posterior.R)) > 0)
    eigenvalues = np.linalg.eigvalsh(np.asarray(posterior.covariance, np.float64))
    assert np.all(np.isfinite(eigenvalues))
    assert eigenvalues[0] > -1e-6 * eigenvalues[-1]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    d=st.sampled_from([1, 3, 20]),
    ratio=st.integers(-8, 8),
    log_beta=st.integers(-4, 4),
    spread=st.sampled_from([1e-3, 1e-1, 1.0]),
    zeta=st.sampled_from([1.0, 0.999, 0.9]),
    batches=st.lists(st.sampled_from([1, 13, 40]), min_size=1, max_size=6),
)
def test_agrees_with_float64(seed, d, ratio, log_beta, spread, zeta, batches):
    rng = np.random.default_rng(seed)
    beta = 10.0**log_beta
    theta = beta * 10.0**ratio
    posterior, reference = Posterior.prior(d, theta, beta, zeta), Reference(d, theta, beta, zeta)
    for n in batches:
        rows, targets = unit_rows(rng, n, d, spread), rng.standard_normal(n).astype(np.float32)
        posterior = posterior.update(jnp.asarray(rows), jnp.asarray(targets))
        reference.update(rows, targets)
    assert_positive_definite(posterior)
    # Decay makes unvisited directions as uncertain as one likes; we follow them so far.
    assume(zeta == 1 or np.sqrt(np.linalg.cond(reference.precision)) < 0.1 / DECAYED_FLOOR)
    bound = tolerance(theta, beta, sum(batches))
    probes = rng.standard_normal((10, d)).astype(np.float32)
    variance = np.einsum("nd,de,ne->n", probes, reference.covariance, probes)
    np.testing.assert_allclose(posterior.variance(jnp.asarray(probes)), variance, rtol=bound)
    joint = probes @ reference.covariance @ probes.T
    scale = np.sqrt(np.outer(variance, variance))
    error = np.abs(posterior.joint_covariance(jnp.asarray(probes)) - joint) / scale
    assert error.max() < bound
    deviation = np.sqrt(np.diag(reference.covariance))
    # The mean is right to within a small part of its own uncertainty.
    away = np.abs(np.asarray(posterior.mean) - reference.mean)
    assert np.all(away <= bound * (deviation + np.abs(reference.mean).max()) * 10)


def test_one_row_or_many_rows_are_the_same_update():
    rng = np.random.default_rng(0)
    rows, targets = jnp.asarray(unit_rows(rng, 12, 4, 0.5)), jnp.arange(12.0)
    many = Posterior.prior(4, 2.0, 0.3, 0.9).update(rows, targets)
    one = Posterior.prior(4, 2.0, 0.3, 0.9)
    for row, target in zip(rows, targets, strict=True):
        one = one.update(row, target)
    np.testing.assert_allclose(one.covariance, many.covariance, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(one.mean, many.mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("d", "n"), [(8 * PANEL, 1), (7 * PANEL + 5, 9)])
def test_few_rows_to_many_features(d, n):
    """Panel by panel, also where the last one is narrower, and with masked rows and decay."""
    rng, posterior = np.random.default_rng(0), Posterior.prior(d, 2.0, 0.3, 0.99)
    reference, update = Reference(d, 2.0, 0.3, 0.99), jax.jit(lambda p, *rows: p.update(*rows))
    for _ in range(12):
        rows, targets, mask = unit_rows(rng, n, d, 0.5), rng.random(n), rng.random(n) < 0.8
        posterior = update(posterior, rows, targets.astype(np.float32), mask)
        reference.update(rows[mask], targets[mask])
    np.testing.assert_array_equal(posterior.R, np.triu(posterior.R))
    np.testing.assert_allclose(posterior.covariance, reference.covariance, atol=1e-4)
    np.testing.assert_allclose(posterior.mean, reference.mean, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("n", [2, 9])  # fewer rows than actions, and more
def test_each_action_s_posterior_learns_from_its_own_rows(n):
    rng, actions, d = np.random.default_rng(0), 3, 4
    posteriors = ActionPosteriors.prior(Posterior.prior(d, 2.0, 0.3, 0.9), actions)
    references = [Reference(d, 2.0, 0.3, 0.9) for _ in range(actions)]
    for _ in range(6):
        rows, action = unit_rows(rng, n, d, 0.5), rng.integers(0, actions, n)
        mask = rng.random(n) < 0.7
        posteriors = posteriors.update(jnp.asarray(rows), jnp.asarray(action), jnp.asarray(mask))
        for a, reference in enumerate(references):
            mine = rows[mask & (action == a)]
            reference.update(mine, np.zeros(len(mine)))
    phi = jnp.asarray(unit_rows(rng, 5, d, 0.5))
    for a, reference in enumerate(references):
        expected = np.sum(phi @ reference.covariance * phi, axis=1)
        np.testing.assert_allclose(posteriors.variance(phi)[:, a], expected, rtol=1e-4)
    logged = posteriors.diagnose()
    trace = sum(np.trace(reference.covariance) for reference in references)
    worst = max(np.linalg.cond(reference.precision) for reference in references)
    np.testing.assert_allclose(logged["posterior_trace"], trace, rtol=1e-4)
    np.testing.assert_allclose(logged["posterior_condition"], worst, rtol=1e-3)


def test_masked_rows_count_for_nothing_not_even_decay():
    rows, targets = jnp.eye(3), jnp.array([1.0, 2.0, 3.0])
    prior = Posterior.prior(3, 1.0, 1.0, 0.5)
    masked = prior.update(rows, targets, jnp.array([True, False, True]))
    plain = prior.update(rows[jnp.array([0, 2])], targets[jnp.array([0, 2])])
    np.testing.assert_allclose(masked.covariance, plain.covariance, rtol=1e-6)
    np.testing.assert_allclose(masked.mean, plain.mean, rtol=1e-6)


def test_by_hand():
    """θ = 4, β = 1, one row (1, 0) with reward 3: Λ = diag(1/4 + 1, 1/4), μ = (3 / 1.25, 0)."""
    posterior = Posterior.prior(2, 4.0, 1.0).update(jnp.array([1.0, 0.0]), jnp.array(3.0))
    np.testing.assert_allclose(posterior.covariance, np.diag([0.8, 4.0]), rtol=1e-6)
    np.testing.assert_allclose(posterior.mean, [2.4, 0.0], rtol=1e-6)


def test_samples_have_the_posterior_moments():
    rng = np.random.default_rng(1)
    posterior = Posterior.prior(3, 1.0, 0.1).update(
        jnp.asarray(unit_rows(rng, 5, 3, 1.0)), jnp.ones(5)
    )
    draws = posterior.sample(jax.random.key(0), (200_000,))
    np.testing.assert_allclose(draws.mean(0), posterior.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(draws.T), posterior.covariance, atol=0.01)
    around = posterior.sample(jax.random.key(0), (200_000,), jnp.full(3, 7.0))
    np.testing.assert_allclose(around - 7.0, draws - posterior.mean[None], atol=1e-5)


def million(posterior, features, batch):
    """A million rows, drawn cyclically, `batch` at a time, in one compiled loop."""

    def body(i, posterior):
        start = (i * batch) % (len(features) - batch + 1)
        return posterior.update(jax.lax.dynamic_slice_in_dim(features, start, batch))

    return jax.jit(lambda p: jax.lax.fori_loop(0, 1_000_000 // batch, body, p))(posterior)


@pytest.mark.parametrize(
    ("batch", "ratio", "bound"),
    # One row at a time, an update is a few units in the last place of R by the end.
    [(1, 1.0, 0.1), (1, 1e4, 0.1), (10, 1.0, 0.02), (100, 1e8, 0.02), (100, 1e-8, 0.02)],
)
def test_a_million_updates(batch, ratio, bound):
    rng = np.random.default_rng(2)
    features = unit_rows(rng, 1000, 5, 0.3)
    posterior = million(Posterior.prior(5, ratio, 1.0), jnp.asarray(features), batch)
    index = (np.arange(1_000_000 // batch) * batch) % (1001 - batch)
    counts = np.zeros(1000)
    for offset in range(batch):
        np.add.at(counts, index + offset, 1)
    rows = features.astype(np.float64)
    covariance = np.linalg.inv(np.eye(5) / ratio + (rows * counts[:, None]).T @ rows)
    probes = rng.standard_normal((20, 5)).astype(np.float32)
    expected = np.einsum("nd,de,ne->n", probes, covariance, probes)
    np.testing.assert_allclose(posterior.variance(jnp.asarray(probes)), expected, rtol=bound)


@pytest.mark.parametrize("zeta", [0.99, 1 - 1e-5])
def test_a_million_updates_with_decay(zeta):
    rng = np.random.default_rng(3)
    features = unit_rows(rng, 1000, 5, 0.3)
    posterior = million(Posterior.prior(5, 1e4, 1e-3, zeta), jnp.asarray(features), 10)
    index = (np.arange(100_000)[:, None] * 10 % 991 + np.arange(10)).ravel()
    weights = np.bincount(index, zeta ** np.arange(999_999, -1, -1.0), minlength=1000)
    rows = features.astype(np.float64)
    precision = np.eye(5) * zeta**1e6 / 1e4 + (rows * weights[:, None]).T @ rows / 1e-3
    expected = np.einsum("nd,de,ne->n", rows, np.linalg.inv(precision), rows)
    np.testing.assert_allclose(posterior.variance(jnp.asarray(features)), expected, rtol=0.02)


@pytest.mark.parametrize("zeta", [0.5, 0.99, 1 - 1e-5])
def test_a_million_decays_of_what_never_comes_again(zeta):
    """One row for ever: every other direction loses its prior without end; nothing may break."""
    features = jnp.broadcast_to(unit_rows(np.random.default_rng(0), 1, 6, 0.3), (1000, 6))
    posterior = million(Posterior.prior(6, 1e4, 1e-3, zeta), features, 10)
    assert_positive_definite(posterior)
    assert np.all(np.isfinite(posterior.sample(jax.random.key(0), (10,))))


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_joint_covariance_is_never_indefinite(seed):
    rng = np.random.default_rng(seed)
    rows = jnp.asarray(unit_rows(rng, 50, 8, 1e-4))
    posterior = Posterior.prior(8, 1e4, 1e-3).update(rows)
    joint = np.asarray(posterior.joint_covariance(rows), np.float64)
    assert np.linalg.eigvalsh(joint).min() > -1e-5 * np.trace(joint)
