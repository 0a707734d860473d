"""Networks for observations that are vectors or images: torsos, and what stands on them.

Every layer takes a whole batch, `x @ weights`: also a convolution, as shifted slices side by side
times one matrix, because inside a compiled loop XLA has no fast convolution on a CPU.
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
from surveyor.networks import linear
from surveyor.types import EnvSpec

TorsoName = Literal["auto", "mlp", "minatar", "nature"]
"""What an observation first goes through. auto: nature for 84 × 84 images, minatar for smaller
ones, mlp for all else."""

CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "minatar": ((16, 3, 1),),
    "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
}
"""Channels, kernel and stride of each layer: Young and Tian (2019), Mnih et al. (2015)."""


class Dense(eqx.Module):
    """x ↦ x W + b."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    @classmethod
    def create(cls, key: Key[Array, ""], inputs: int, outputs: int, gain: float = 2.0) -> "Dense":
        """Normal weights of variance gain / inputs (He et al. 2015), bias zero."""
        weight = jax.random.normal(key, (inputs, outputs)) * math.sqrt(gain / inputs)
        return cls(weight, jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "b inputs"]) -> Float[Array, "b outputs"]:
        return linear(x, self.weight) + self.bias


class Convolution(eqx.Module):
    """A convolution over images (height, width, channels), without padding, and a ReLU."""

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

    def __call__(self, x: Float[Array, "b h w c"]) -> Float[Array, "b h2 w2 c2"]:
        b, h, w, _ = x.shape
        s, out_h, out_w = self.stride, self.size(h), self.size(w)
        blocks = self.kernel // s  # in units of the stride a kernel is blocks × blocks
        x = x[:, : (out_h + blocks - 1) * s, : (out_w + blocks - 1) * s]
        if s > 1:  # s × s neighbouring pixels become channels of one
            offsets = [(i, j) for i in range(s) for j in range(s)]
            x = jnp.concatenate([x[:, i::s, j::s] for i, j in offsets], axis=-1)
        shifted = [x[:, i : i + out_h, j : j + out_w] for i in range(blocks) for j in range(blocks)]
        patches = jnp.concatenate(shifted, axis=-1)
        out = self.dense(patches.reshape(b * out_h * out_w, -1))
        return jax.nn.relu(out).reshape(b, out_h, out_w, -1)


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
            channels_first = spec.shape[0] < spec.shape[-1]
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

    def __call__(self, obs: Shaped[Array, "b ..."]) -> Float[Array, "b hidden"]:
        x = obs.astype(jnp.float32) * self.scale
        if self.convolutions and self.channels_first:
            x = jnp.moveaxis(x, 1, -1)
        for convolution in self.convolutions:
            x = convolution(x)
        x = x.reshape(len(x), -1)
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
        """Clip the gradient's norm, then Adam."""
        clip = optax.clip_by_global_norm(self.max_norm)
        return optax.chain(clip, optax.adam(self.learning_rate, eps=self.eps))


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
        updates, moments = self.adam.transform.update(gradients, self.moments)
        net, step = eqx.apply_updates(self.net, updates), self.step + 1
        due = step % self.adam.target_every == 0
        target = jax.lax.cond(due, lambda: net, lambda: self.target)
        return Trained(net, target, moments, step, self.adam)
