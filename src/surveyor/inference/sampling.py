"""Random draws that JAX has only in a slow form."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.types import PRNG

ROUNDS = 5
"""Rounds of proposals: each is refused in less than 5% of the cases, all in one of 3 million."""


def log_gamma(key: PRNG, shape: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Draw the logarithm of Gamma(shape, 1), by Marsaglia and Tsang's method (2000).

    JAX's own draws one number after another on a CPU, because each may take another number of
    rounds. Here all go through the same few rounds together.
    """
    full, shape = shape.shape, shape.reshape(-1)  # loops over short rows are slow on a CPU
    d = shape + 2 / 3  # of Gamma(shape + 1), which the rounds draw
    c = 1 / (3 * jnp.sqrt(d))
    tiny = jnp.finfo(jnp.float32).tiny
    boost_key, *keys = jax.random.split(key, ROUNDS + 1)

    def propose(carry, key):
        log_v, accepted = carry
        normal_key, uniform_key = jax.random.split(key)
        x = jax.random.normal(normal_key, shape.shape)
        u = jax.random.uniform(uniform_key, shape.shape, minval=tiny)
        root = 1 + c * x
        proposal = 3 * jnp.log(jnp.maximum(root, 1e-9))
        fits = jnp.log(u) < 0.5 * x**2 + d - d * jnp.exp(proposal) + d * proposal
        log_v = jnp.where(accepted | (root <= 0), log_v, proposal)
        return (log_v, accepted | (fits & (root > 0))), None

    start = (jnp.zeros_like(shape), jnp.zeros(shape.shape, bool))
    (log_v, _), _ = jax.lax.scan(propose, start, jnp.stack(keys))
    # Gamma(k) is Gamma(k + 1) times U^(1/k).
    u = jax.random.uniform(boost_key, shape.shape, minval=tiny)
    return (jnp.log(d) + log_v + jnp.log(u) / shape).reshape(full)
