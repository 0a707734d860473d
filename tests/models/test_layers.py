"""Layers against XLA's own operations and gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.layers import Convolution, Dense, matmul


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (4, 2), (8, 4)])
def test_a_convolution_is_xla_s_own(kernel, stride):
    layer = Convolution(Dense.create(jax.random.key(0), kernel**2 * 3, 5), kernel, stride)
    x = jax.random.normal(jax.random.key(1), (3, 21, 18, 2))
    # Our inputs are ordered by blocks of the stride, then by channels, then by pixels in a block.
    blocks = kernel // stride
    form = ("CHWN", "OIHW", "CHWN")

    def ours(layer, x):
        return layer(x)

    def xla_s(layer, x):
        W = layer.dense.weight.reshape(5, blocks, blocks, 3, stride, stride)
        W = W.transpose(0, 3, 1, 4, 2, 5).reshape(5, 3, kernel, kernel)
        strides = (stride, stride)
        y = jax.lax.conv_general_dilated(x, W, strides, "VALID", dimension_numbers=form)
        return jax.nn.relu(y)

    np.testing.assert_allclose(ours(layer, x), xla_s(layer, x), rtol=1e-4, atol=1e-4)
    gradients = [
        jax.grad(lambda both, f=f: jnp.sum(f(*both) ** 2))((layer, x)) for f in (ours, xla_s)
    ]
    for a, b in (
        (gradients[0][0].dense.weight, gradients[1][0].dense.weight),
        (gradients[0][1], gradients[1][1]),
    ):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "n", "b"), [(7, 5, 3), (3, 5, 40), (30, 5, 40), (60, 50, 3)])
def test_a_product_has_the_gradients_of_a_product(m, n, b):
    shapes = [(m, n), (n, b), (m, b)]
    W, x, g = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(shapes))
    value, pull = jax.vjp(matmul, W, x)
    np.testing.assert_allclose(value, W @ x, rtol=1e-5, atol=1e-5)
    for ours, plain in zip(pull(g), jax.vjp(jnp.matmul, W, x)[1](g), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-4)


def test_a_layer_has_the_gradients_of_weights_and_bias():
    layer = Dense.create(jax.random.key(0), 5, 4)
    layer = eqx.tree_at(lambda layer: layer.bias, layer, jnp.arange(4.0))
    x, g = jax.random.normal(jax.random.key(1), (5, 3)), jnp.arange(12.0).reshape(4, 3)
    value, pull = jax.vjp(lambda layer: layer(x), layer)
    np.testing.assert_allclose(value, layer.weight @ x + layer.bias[:, None], rtol=1e-5)
    (gradient,) = pull(g)
    np.testing.assert_allclose(gradient.bias, [3, 12, 21, 30])
    np.testing.assert_allclose(gradient.weight, g @ x.T, rtol=1e-5)
