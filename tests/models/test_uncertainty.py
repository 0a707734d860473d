"""UBE's u: never negative, and trained without the features below it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.uncertainty import DeepU, TabularU, UncertaintyModel
from surveyor.types import EnvSpec

SPEC = EnvSpec(4, 2, 3)
FEATURES = jnp.asarray(np.random.default_rng(0).random((4, 6)), jnp.float32)
OBS = jnp.arange(4)


@pytest.mark.parametrize("start", [0.01, 30.0])
@pytest.mark.parametrize("kind", ["table", "network"])
def test_u_is_its_start_everywhere_then_follows_a_loss_and_stays_positive(kind, start):
    model = (
        TabularU.create(SPEC, start, 0.05)
        if kind == "table"
        else DeepU.create(SPEC, start, 6, 0.05)
    )
    assert isinstance(model, UncertaintyModel)
    np.testing.assert_allclose(model.value(OBS, FEATURES), start, rtol=1e-4)
    assert model.value(OBS[0], FEATURES[0]).shape == (2,)
    fit = jax.jit(lambda model: model.fit(OBS, FEATURES, lambda u: jnp.mean((u + 1) ** 2)))
    losses = []
    for _ in range(50):
        model, loss = fit(model)
        losses.append(float(loss))
    assert losses[0] == pytest.approx((start + 1) ** 2, rel=1e-4)
    assert losses[-1] < losses[0]
    assert np.all(np.asarray(model.value(OBS, FEATURES)) > 0)


def test_the_features_below_u_are_not_trained_by_it():
    model = DeepU.create(SPEC, 1.0, 6, 0.05)
    model, _ = model.fit(OBS, FEATURES, lambda u: jnp.sum(u))
    slope = jax.grad(lambda features: jnp.sum(model.value(OBS, features)))(FEATURES)
    np.testing.assert_array_equal(slope, 0)
