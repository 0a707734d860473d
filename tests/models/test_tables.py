"""Deferred Adam against dense Adam, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from surveyor.models.tables import RowAdam, Table

RATE = 1e-2


def run_both(steps, rows, width, batch, seed, scale=1.0):
    """Yield the table as deferred Adam has it and as optax.adam has it, after every step."""
    rng = np.random.default_rng(seed)
    value = jnp.asarray(rng.standard_normal((rows, width)), jnp.float32)
    adam, dense = RowAdam(RATE), optax.adam(RATE)
    table, dense_value, dense_state = Table.create(value), value, dense.init(value)

    @jax.jit
    def sparse_step(table, ids, gradient, step):
        fetched = adam.fetch(table, ids, step)
        return adam.update(table, ids, fetched, gradient, step)

    @jax.jit
    def dense_step(value, state, ids, gradient):
        full = jnp.zeros_like(value).at[ids].add(gradient)
        updates, state = dense.update(full, state)
        return optax.apply_updates(value, updates), state

    everything = jax.jit(lambda table, step: adam.fetch(table, jnp.arange(rows), step).value)
    for step in range(steps):
        ids = jnp.asarray(rng.integers(0, rows, batch), jnp.int32)
        gradient = jnp.asarray(scale * rng.standard_normal((batch, width)), jnp.float32)
        table = sparse_step(table, ids, gradient, jnp.int32(step))
        dense_value, dense_state = dense_step(dense_value, dense_state, ids, gradient)
        yield everything(table, jnp.int32(step + 1)), dense_value, table, dense_state


@pytest.mark.parametrize(("rows", "batch"), [(5, 4), (50, 3), (300, 2)])
@pytest.mark.parametrize(("scale", "share"), [(1.0, 0.002), (1e-3, 0.1)])
def test_every_row_is_where_dense_adam_has_it_after_every_step(rows, batch, scale, share):
    """To within a small share of one step; what there is comes from gradients near Adam's ε."""
    for sparse, dense, _, _ in run_both(300, rows, 3, batch, seed=rows, scale=scale):
        np.testing.assert_allclose(sparse, dense, atol=share * RATE)


def test_the_moments_are_those_of_dense_adam():
    _, _, table, state = list(run_both(100, 20, 2, 3, seed=1))[-1]
    now = RowAdam(RATE).fetch(table, jnp.arange(20), jnp.int32(100))
    np.testing.assert_allclose(now.m, state[0].mu, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(now.v, state[0].nu, rtol=1e-4, atol=1e-9)


def test_a_row_that_stays_away_for_long_comes_to_rest():
    adam, table = RowAdam(1e-3), Table.create(jnp.zeros((2, 1)))
    first = jnp.array([0], jnp.int32)
    rows = adam.fetch(table, first, jnp.int32(0))
    table = adam.update(table, first, rows, jnp.ones((1, 1)), jnp.int32(0))
    dense, value, state = optax.adam(1e-3), jnp.zeros(1), optax.adam(1e-3).init(jnp.zeros(1))
    for step in range(2000):
        updates, state = dense.update(jnp.ones(1) if step == 0 else jnp.zeros(1), state)
        value = value + updates
    for missed in (2000, 10**6):
        late = adam.fetch(table, first, jnp.int32(missed))
        np.testing.assert_allclose(late.value[0], value, rtol=1e-4)
        assert np.all(np.isfinite(late.m))
        assert np.all(np.isfinite(late.v))


def test_equal_ids_in_a_batch_add_up():
    adam, table = RowAdam(RATE), Table.create(jnp.zeros((3, 2)))
    ids, gradient = jnp.array([1, 1, 2], jnp.int32), jnp.array([[1.0, 0], [2, 0], [0, 5]])
    table = adam.update(table, ids, adam.fetch(table, ids, jnp.int32(0)), gradient, jnp.int32(0))
    np.testing.assert_allclose(table.packed[1, 2:4], [0.3, 0.0], rtol=1e-6)
    np.testing.assert_allclose(table.packed[2, 2:4], [0.0, 0.5], rtol=1e-6)
    np.testing.assert_array_equal(table.packed[:, -1], [0, 1, 1])
