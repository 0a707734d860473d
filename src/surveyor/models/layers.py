"""Layers that are fast on a CPU.

The batch is the last axis, and a layer is `weights @ x`: on a CPU such products are up to twice as
fast as `x @ weights`, where the small batch comes first and the large matrix is packed every time.
A convolution is shifted slices stacked and multiplied by one matrix, because XLA has no fast
convolution inside a compiled loop on a CPU.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from surveyor.types import PRNG


@jax.custom_vjp
def matmul(a: Float[Array, "m n"], b: Float[Array, "n k"]) -> Float[Array, "m k"]:
    """Return a @ b, with gradients that are fast on CPUs.

    XLA would fold a transpose of the left matrix into the product, for which it has no library
    routine. So the gradient transposes matrices apart from the product, and where `a` is large
    (weights), the others.
    """
    return a @ b


def _matmul_backward(saved, g):
    a, b = saved
    (m, k), n = g.shape, len(b)
    barrier = jax.lax.optimization_barrier
    of_a = barrier(b @ barrier(g.T)).T if m < n < k else g @ b.T
    if 8 * (m + n) * k < m * n:  # such weights are in no cache, and moving them costs the most
        return of_a, barrier(barrier(g.T) @ a).T
    return of_a, barrier(a.T) @ g


matmul.defvjp(lambda a, b: (a @ b, (a, b)), _matmul_backward)


@jax.custom_vjp
def add_bias(x: Float[Array, "m b"], bias: Float[Array, " m"]) -> Float[Array, "m b"]:
    """Add the bias to each column. Its gradient is a product with ones: XLA's sums are slower."""
    return x + bias[:, None]


add_bias.defvjp(
    lambda x, bias: (x + bias[:, None], None), lambda _, g: (g, g @ jnp.ones(g.shape[1]))
)


class Dense(eqx.Module):
    """The affine map x ↦ W x + b of each column of x."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    @classmethod
    def create(cls, key: PRNG, inputs: int, outputs: int, gain: float = 2.0) -> "Dense":
        """Draw normal weights of variance gain / inputs (He et al. 2015); the bias is zero."""
        weight = jax.random.normal(key, (outputs, inputs)) * math.sqrt(gain / inputs)
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "inputs b"]) -> Float[Array, "outputs b"]:
        return add_bias(matmul(self.weight, x), self.bias)


class Convolution(eqx.Module):
    """A convolution without padding over images (channels, height, width, batch), and a ReLU.

    The kernel is a multiple of the stride.
    """

    dense: Dense
    kernel: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    def size(self, side: int) -> int:
        """Return the length of an image's side after the convolution."""
        return (side - self.kernel) // self.stride + 1

    def __call__(
        self, x: Shaped[Array, "c h w b"], scale: float = 1.0
    ) -> Float[Array, "c2 h2 w2 b"]:
        """Accept uint8 or float images; scale after extracting patches, to copy them as bytes."""
        c, h, w, b = x.shape
        s, out_h, out_w = self.stride, self.size(h), self.size(w)
        blocks = self.kernel // s  # in units of the stride a kernel is blocks × blocks
        rows, columns = out_h + blocks - 1, out_w + blocks - 1
        x = x[:, : rows * s, : columns * s]
        if s > 1:  # s × s neighbouring pixels become channels of one
            x = x.reshape(c, rows, s, columns, s, b).transpose(0, 2, 4, 1, 3, 5)
            x = x.reshape(c * s * s, rows, columns, b)
        shifted = [x[:, i : i + out_h, j : j + out_w] for i in range(blocks) for j in range(blocks)]
        patches = jnp.concatenate(shifted).reshape(-1, out_h * out_w * b)
        out = self.dense(patches.astype(jnp.float32) * scale)
        return jax.nn.relu(out).reshape(-1, out_h, out_w, b)
