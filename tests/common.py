"""Observations and batches for tests of networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from surveyor.types import Batch, EnvSpec

VECTOR = EnvSpec(0, 3, 0, (4,), "float32")
SMALL = EnvSpec(0, 3, 0, (10, 10, 4), "bool")
PIXELS = EnvSpec(0, 3, 0, (4, 84, 84), "uint8", stack=4)
NAMES = EnvSpec(0, 3, 0, (5, 5, 3), "uint8", image=(5, 5, 3), codes=(11, 6, 4))


def observations(spec, n, seed=0):
    rng = np.random.default_rng(seed)
    if spec.codes:
        return jnp.asarray(rng.integers(0, spec.codes, (n, *spec.shape)), spec.dtype)
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


def compiled(method):
    """Return a method as one program, which takes far less time than each operation by itself."""
    return eqx.filter_jit(method)


def begun(agent, spec=VECTOR):
    """Return an untrained state, from one program: ten times faster than by operations."""
    return jax.jit(lambda key: agent.init(spec, key))(jax.random.key(0))


def filled(obs, action, reward, following, ended, b=100):
    """Return a batch of one transition, many times."""

    def fill(x, kind):
        return jnp.full(b, x, kind)

    integers = (fill(obs, jnp.int32), fill(action, jnp.int32))
    rest = (fill(following, jnp.int32), fill(ended, bool), jnp.arange(b))
    return Batch(*integers, fill(reward, jnp.float32), *rest)


def learn(agent, state, data, steps):
    """Take gradient steps on the same batch, in one program."""
    step = lambda state, key: (agent.learn(state, data, key)[0], None)  # noqa: E731
    keys = jax.random.split(jax.random.key(0), steps)
    return jax.jit(lambda state: jax.lax.scan(step, state, keys)[0])(state)
