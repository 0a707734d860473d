"""Our own draws against SciPy's distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from surveyor.inference.mdp import log_gamma


@pytest.mark.parametrize("shape", [1e-3, 0.3, 1.0, 2.5, 1000.0])
def test_log_gamma_has_the_distribution_it_should(shape):
    draws = np.asarray(log_gamma(jax.random.key(0), jnp.full((100, 500), shape)), float)
    assert draws.shape == (100, 500)
    assert stats.kstest(draws.ravel(), stats.loggamma(shape).cdf).pvalue > 1e-3


def test_two_keys_give_two_draws():
    shape = jnp.ones(5)
    first, second = log_gamma(jax.random.key(0), shape), log_gamma(jax.random.key(1), shape)
    assert not np.array_equal(first, second)
