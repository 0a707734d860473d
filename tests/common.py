"""Observations and batches for tests of networks."""

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.types import Batch, EnvSpec

VECTOR = EnvSpec(0, 3, 0, (4,), "float32")
SMALL = EnvSpec(0, 3, 0, (10, 10, 4), "bool")


def observations(spec, n, seed=0):
    rng = np.random.default_rng(seed)
    if spec.dtype == "float32":
        return jnp.asarray(rng.standard_normal((n, *spec.shape)), jnp.float32)
    return jnp.asarray(
        rng.integers(0, 2 if spec.dtype == "bool" else 256, (n, *spec.shape)), spec.dtype
    )


def batch(spec, n=8, seed=0, **more):
    rng = np.random.default_rng(seed)
    return Batch(
        observations(spec, n, seed),
        jnp.asarray(rng.integers(0, 3, n), jnp.int32),
        jnp.asarray(rng.standard_normal(n), jnp.float32),
        observations(spec, n, seed + 1),
        jnp.asarray(rng.random(n) < 0.2),
        jnp.arange(n),
        jnp.full(n, 0.9),
        **more,
    )


def begun(agent, spec=VECTOR):
    """A state at its beginning, in one program: operation by operation takes ten times as long."""
    return jax.jit(lambda key: agent.init(spec, key))(jax.random.key(0))
