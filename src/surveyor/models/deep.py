"""Networks for observations that are vectors or images: torsos, and what stands on them.

Here the batch is the last axis, and a layer is `weights @ x`: on a CPU such products are up to
twice as fast as `x @ weights`, where the small batch comes first and the large matrix is packed
anew every time. A convolution is shifted slices on top of each other times one matrix, because
inside a compiled loop XLA has no fast convolution on a CPU.
"""

import dataclasses
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, Shaped

from surveyor.errors import SurveyorError
from surveyor.types import EnvSpec

TorsoName = Literal["auto", "mlp", "minatar", "nature"]
"""What an observation first goes through. auto: nature for 84 × 84 images, minatar for smaller
ones, mlp for all else."""

CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "minatar": ((16, 3, 1),),
    "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
}
"""Channels, kernel and stride of each layer: Young and Tian (2019), Mnih et al. (2015)."""


@jax.custom_vjp
def times(weights: Float[Array, "m n"], x: Float[Array, "n b"]) -> Float[Array, "m b"]:
    """weights @ x, with gradients that are fast on CPUs.

    XLA would fold a transpose of the left matrix into the product, and has no library routine then;
    so matrices are transposed apart from the product, and of large weights the others.
    """
    return weights @ x


def _times_backward(saved, g):
    weights, x = saved
    (m, b), n = g.shape, len(x)
    barrier = jax.lax.optimization_barrier
    of_weights = barrier(x @ barrier(g.T)).T if m < n < b else g @ x.T
    if 8 * (m + n) * b < m * n:  # such weights are in no cache, and to move them costs the most
        return of_weights, barrier(barrier(g.T) @ weights).T
    return of_weights, barrier(weights.T) @ g


times.defvjp(lambda weights, x: (weights @ x, (weights, x)), _times_backward)


@jax.custom_vjp
def plus(x: Float[Array, "m b"], bias: Float[Array, " m"]) -> Float[Array, "m b"]:
    """x + bias in each column. Its gradient is a product with ones: XLA's sums are slower."""
    return x + bias[:, None]


plus.defvjp(lambda x, bias: (x + bias[:, None], None), lambda _, g: (g, g @ jnp.ones(g.shape[1])))


class Dense(eqx.Module):
    """x ↦ W x + b, for each column of x."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, outputs: int, gain: float = 2.0) -> "Dense":
        """Normal weights of variance gain / inputs (He et al. 2015), bias zero."""
        weight = jax.random.normal(key, (outputs, inputs)) * math.sqrt(gain / inputs)
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "inputs b"]) -> Float[Array, "outputs b"]:
        return plus(times(self.weight, x), self.bias)


class Convolution(eqx.Module):
    """A convolution over images (channels, height, width, batch), without padding, and a ReLU."""

    dense: Dense
    kernel: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, key: Key[Array, ""], inputs: int, channels: int, kernel: int, stride: int
    ) -> "Convolution":
        """One for images with so many input channels; the kernel is a multiple of the stride."""
        return cls(Dense.create(key, kernel**2 * inputs, channels), kernel, stride)

    def size(self, side: int) -> int:
        """How long a side of the image is afterwards."""
        return (side - self.kernel) // self.stride + 1

    def __call__(
        self, x: Shaped[Array, "c h w b"], scale: float = 1.0
    ) -> Float[Array, "c2 h2 w2 b"]:
        """Of what may be bytes, to be multiplied with a scale: patches of bytes are soon made."""
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


class Torso(eqx.Module):
    """Observations to a hidden layer: convolutions if any, then dense layers, each with a ReLU."""

    convolutions: tuple[Convolution, ...]
    layers: tuple[Dense, ...]
    scale: float = eqx.field(static=True)
    """What an observation is multiplied with: 1/255 where it is bytes."""
    channels_first: bool = eqx.field(static=True)
    dimensions: int = eqx.field(static=True)
    """How many axes an observation has."""

    @classmethod
    def create(cls, spec: EnvSpec, name: TorsoName, hidden: int, key: Key[Array, ""]) -> "Torso":
        """The torso of this name for these observations, with a hidden layer of this width."""
        keys = iter(jax.random.split(key, 8))
        kind = name if name != "auto" else choose(spec)
        convolutions, channels_first = [], False
        if kind == "mlp":
            width = math.prod(spec.shape)
            layers = [Dense.create(next(keys), width, hidden)]
            width = hidden
        else:
            if len(spec.shape) != 3:
                raise SurveyorError(
                    f"The {kind} torso is for images, of three axes, and observations have shape "
                    f"{spec.shape}; mlp would do."
                )
            first, second, third = spec.shape
            channels_first = first != second and (second == third or first < third)
            h, w, c = (
                (spec.shape[1], spec.shape[2], spec.shape[0]) if channels_first else spec.shape
            )
            layers = []
            for channels, kernel, stride in CONVOLUTIONS[kind]:
                convolutions.append(Convolution.create(next(keys), c, channels, kernel, stride))
                h, w, c = convolutions[-1].size(h), convolutions[-1].size(w), channels
            if min(h, w) < 1:
                raise SurveyorError(
                    f"Images of shape {spec.shape} are too small for the {kind} torso; "
                    "minatar needs 3 × 3 pixels and nature 36 × 36."
                )
            width = h * w * c
        layers.append(Dense.create(next(keys), width, hidden))
        scale = 1 / 255 if spec.dtype == "uint8" else 1.0
        return cls(tuple(convolutions), tuple(layers), scale, channels_first, len(spec.shape))

    def __call__(self, obs: Shaped[Array, "b ..."]) -> Float[Array, "hidden b"]:
        x, scale = jnp.moveaxis(obs, 0, -1), self.scale
        if self.convolutions and not self.channels_first:
            x = jnp.moveaxis(x, 2, 0)
        for convolution in self.convolutions:
            x, scale = convolution(x, scale), 1.0
        x = x.reshape(-1, len(obs)).astype(jnp.float32) * scale
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x

    def flatten(self, obs: Shaped[Array, "..."]) -> tuple[Shaped[Array, "b ..."], tuple[int, ...]]:
        """Observations along one axis, and the axes that were before it."""
        lead = obs.shape[: obs.ndim - self.dimensions]
        return obs.reshape(-1, *obs.shape[len(lead) :]), lead


def choose(spec: EnvSpec) -> str:
    """The torso that suits these observations."""
    if len(spec.shape) != 3:
        return "mlp"
    sides = sorted(spec.shape)[1:]
    if sides[0] >= 36:
        return "nature"
    return "minatar" if sides[0] >= 3 else "mlp"


@dataclasses.dataclass(frozen=True)
class DeepAdam:
    """How a network is trained, and when its target network follows."""

    learning_rate: float
    eps: float
    max_norm: float
    target_every: int

    @property
    def transform(self) -> optax.GradientTransformation:
        """Adam, of gradients that have been clipped."""
        return optax.adam(self.learning_rate, eps=self.eps)

    def clip(self, gradients: Any) -> Any:
        """Shorten the gradient to the largest norm.

        As `optax.clip_by_global_norm`, with products in place of its reductions and one factor in
        place of its divisions: on a CPU about a quarter of the time.
        """
        square = sum(map(_square, jax.tree.leaves(gradients)))
        factor = self.max_norm / jnp.maximum(jnp.sqrt(square), self.max_norm)
        return jax.tree.map(lambda g: factor * g, gradients)


def _square(gradient: Float[Array, "..."]) -> Float[Array, ""]:
    """Its squared norm."""
    if gradient.ndim < 2:
        return jnp.vdot(gradient, gradient)
    rows = gradient**2 @ jnp.ones(gradient.shape[-1])
    return jnp.sum(jax.lax.optimization_barrier(rows))


class Trained(eqx.Module):
    """A network with its target network and its optimiser."""

    net: Any
    target: Any
    moments: optax.OptState
    step: Int[Array, ""]
    adam: DeepAdam = eqx.field(static=True)

    @classmethod
    def create(cls, net: Any, adam: DeepAdam) -> "Trained":
        """At its beginning."""
        moments = adam.transform.init(eqx.filter(net, eqx.is_array))
        target = jax.tree.map(jnp.copy, net)  # a buffer of its own: both are donated
        return cls(net, target, moments, jnp.zeros((), jnp.int32), adam)

    def update(self, gradients: Any) -> "Trained":
        """One step of Adam; every so many steps the target network is what was learnt."""
        gradients = jax.lax.optimization_barrier(gradients)  # or XLA computes them more than once
        gradients = self.adam.clip(gradients)
        updates, moments = self.adam.transform.update(gradients, self.moments)
        net, step = eqx.apply_updates(self.net, updates), self.step + 1
        due = step % self.adam.target_every == 0
        target = jax.lax.cond(due, lambda: net, lambda: self.target)
        return Trained(net, target, moments, step, self.adam)
