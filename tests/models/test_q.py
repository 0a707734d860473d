"""Q models, tables and networks alike, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.deep_q import DeepQ
from surveyor.models.optimiser import Adam
from surveyor.models.q import FixedQ, QModel, q_losses
from surveyor.models.tables import RowAdam
from surveyor.models.tabular_q import TabularQ
from surveyor.types import Batch, EnvSpec
from tests.common import VECTOR, compiled, observations

NUMBERED = EnvSpec(5, 3, 4)


def table(**more):
    options = {"heads": 4, "width": 6, "adam": RowAdam(1e-2), "outputs": True, **more}
    return jax.jit(lambda key: TabularQ.create(NUMBERED, key, **options))(jax.random.key(0))


def network(**more):
    options = {"heads": 4, "width": 6, "torso": "auto", "adam": Adam(1e-2), "target_every": 2}
    options |= {"outputs": True, **more}
    create = lambda key: DeepQ.create(VECTOR, key, **options)  # noqa: E731
    return jax.jit(create)(jax.random.key(0))


@pytest.fixture(params=["table", "network"], scope="module")
def model(request):
    return table() if request.param == "table" else network()


def inputs(model, n, seed=0):
    if isinstance(model, TabularQ):
        return jnp.asarray(np.random.default_rng(seed).integers(0, 5, n), jnp.int32)
    return observations(VECTOR, n, seed)


def batch(model, n=8, **more):
    rng = np.random.default_rng(0)
    action, reward = rng.integers(0, 3, n), rng.standard_normal(n)
    return Batch(
        inputs(model, n), jnp.asarray(action, jnp.int32), jnp.asarray(reward, jnp.float32),
        inputs(model, n, 1), jnp.zeros(n, bool), jnp.arange(n), **more,
    )  # fmt: skip


def test_q_is_weights_times_features_without_a_bias(model):
    obs = inputs(model, 7)
    phi, W = (np.asarray(x, np.float64) for x in (compiled(model.features)(obs), model.weights))
    assert W.shape == (4, 6, 3)
    phi = np.broadcast_to(phi, (7, 4, 6))
    np.testing.assert_allclose(
        compiled(model.q)(obs), np.einsum("bgh,gha->bga", phi, W), rtol=1e-4, atol=1e-5
    )
    heads = jnp.array([2, 0])
    np.testing.assert_allclose(
        compiled(model.q)(obs, heads), compiled(model.q)(obs)[:, heads], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        compiled(model.q)(obs[3]), compiled(model.q)(obs)[3], rtol=1e-4, atol=1e-5
    )
    assert isinstance(model, QModel)


@pytest.mark.parametrize("create", [table, network])
def test_without_outputs_q_starts_at_zero_and_features_do_not(create):
    model = create(outputs=False)
    obs = inputs(model, 7)
    np.testing.assert_array_equal(compiled(model.q)(obs), 0)
    assert np.any(np.asarray(compiled(model.features)(obs)) > 0)


def test_losses_are_those_of_the_action_taken_with_mask_and_weights():
    q = np.random.default_rng(1).standard_normal((8, 2, 3)).astype(np.float32)
    weight, mask = np.linspace(0.2, 1, 8), np.arange(16).reshape(8, 2) % 3 > 0
    data = batch(table(), weight=jnp.asarray(weight, jnp.float32))
    targets = np.random.default_rng(2).standard_normal((8, 2)).astype(np.float32)
    errors = q[np.arange(8), :, np.asarray(data.action)] - targets
    losses = weight[:, None] * mask * errors**2
    given = (jnp.asarray(q), data, jnp.asarray(targets), "squared", jnp.asarray(mask, jnp.float32))
    total, update = q_losses(*given)
    assert float(total) == pytest.approx(losses.sum(), rel=1e-5)
    assert float(update.metrics["q_loss"]) == pytest.approx(losses.mean(), rel=1e-5)
    np.testing.assert_allclose(update.errors, errors.mean(1), rtol=1e-4, atol=1e-6)


def test_steps_bring_every_head_to_its_own_targets(model):
    data, heads = batch(model), jnp.arange(4)
    targets = jnp.broadcast_to(jnp.arange(4.0) - 1, (8, 4))
    fit = jax.jit(lambda model: model.fit(data, targets, "smooth_l1", heads))
    new = model
    for _ in range(400):
        new, update = fit(new)
    taken = np.asarray(compiled(new.q)(data.obs))[np.arange(8), :, np.asarray(data.action)]
    np.testing.assert_allclose(taken, targets, atol=0.15)
    assert float(update.metrics["q_loss"]) < 0.01
    np.testing.assert_allclose(
        compiled(new.target_q)(data.obs), compiled(new.q)(data.obs), rtol=1e-4, atol=1e-4
    )


def test_a_masked_example_teaches_nothing(model):
    data, targets = batch(model, 2), jnp.ones((2, 4))
    fit = jax.jit(lambda mask: model.fit(data, targets, "squared", mask=mask)[0])
    none, first = fit(jnp.zeros((2, 4))), fit(jnp.array([[1.0] * 4, [0.0] * 4]))
    np.testing.assert_array_equal(compiled(none.q)(data.obs), compiled(model.q)(data.obs))
    alone = jax.tree.map(lambda x: x[:1], data)
    gradient = jax.jit(lambda: model.fit(alone, targets[:1], "squared")[0])()
    np.testing.assert_allclose(
        compiled(first.q)(data.obs), compiled(gradient.q)(data.obs), rtol=1e-3, atol=1e-4
    )


def test_heads_of_a_table_that_are_not_trained_stand_still():
    model = table()
    data = batch(model)
    new, _ = compiled(model.fit)(data, jnp.ones((8, 2)), "squared", jnp.array([3, 1]))
    before, after = (np.asarray(compiled(each.q)(jnp.arange(5))) for each in (model, new))
    moved = np.any(before != after, axis=(0, 2))
    np.testing.assert_array_equal(moved, [False, True, False, True])
    np.testing.assert_array_equal(new.steps, [0, 1, 0, 1])


def test_a_network_values_with_its_target_network():
    model = network()
    data = batch(model)
    new, _ = compiled(model.fit)(data, jnp.ones((8, 4)), "squared")
    np.testing.assert_array_equal(compiled(new.target_q)(data.obs), compiled(model.q)(data.obs))
    assert np.any(np.asarray(compiled(new.q)(data.obs)) != np.asarray(compiled(model.q)(data.obs)))
    after, _ = compiled(new.fit)(data, jnp.ones((8, 4)), "squared")
    np.testing.assert_array_equal(compiled(after.target_q)(data.obs), compiled(after.q)(data.obs))


def test_fixed_values_are_the_current_ones_times_a_factor(model):
    data, heads = batch(model), jnp.array([3, 1])
    fixed, q = compiled(model.fixed)(2.5), 2.5 * np.asarray(compiled(model.q)(data.obs))
    np.testing.assert_allclose(fixed.q(data.obs, heads), q[:, [3, 1]], rtol=1e-5, atol=1e-6)
    assert isinstance(fixed, FixedQ)


def test_heads_that_share_a_network_count_by_their_balance():
    mine, data = network(balance=(3.0, 1.0, 1.0, 1.0)), batch(network())
    targets = jnp.asarray(np.random.default_rng(1).standard_normal((8, 4)), jnp.float32)
    assert mine.balance == (2.0, *[2 / 3] * 3)
    by_hand = jnp.tile(jnp.array([2.0, 2 / 3, 2 / 3, 2 / 3]), (8, 1))
    step = compiled(lambda model, mask: model.fit(data, targets, "squared", mask=mask)[0])
    found, expected = step(mine, jnp.ones((8, 4))), step(network(), by_hand)
    alike = step(network(), jnp.ones((8, 4)))
    for a, b in zip(*map(jax.tree.leaves, (found.trained, expected.trained)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert np.abs(found.q(data.obs) - alike.q(data.obs)).max() > 1e-3
