"""Torsos: networks from observations that are vectors or images to a hidden layer."""

import itertools
import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from surveyor.errors import SurveyorError
from surveyor.models.layers import Convolution, Dense
from surveyor.types import PRNG, EnvSpec, Obs

TorsoName = Literal["auto", "mlp", "minatar", "nature"]
"""Names of torsos. auto: nature for images of at least 36 × 36, minatar for smaller ones, mlp for
everything else."""

CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "minatar": ((16, 3, 1),),
    "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
}
"""Channels, kernel and stride of each layer: Young and Tian (2019), Mnih et al. (2015)."""


class Torso(eqx.Module):
    """Convolutions if any, then dense layers, each followed by a ReLU."""

    convolutions: tuple[Convolution, ...]
    layers: tuple[Dense, ...]
    scale: float = eqx.field(static=True)
    """Factor on observations: 1/255 for bytes."""
    channels_first: bool = eqx.field(static=True)
    dimensions: int = eqx.field(static=True)
    """Number of axes of an observation."""

    @classmethod
    def create(cls, spec: EnvSpec, name: TorsoName, hidden: int, key: PRNG) -> "Torso":
        """Draw the torso of this name for these observations; `hidden` is the last width."""
        keys = iter(jax.random.split(key, 8))
        kind = choose(spec) if name == "auto" else name
        scale = 1 / 255 if spec.dtype == "uint8" else 1.0
        convolutions, widths, channels_first = [], [math.prod(spec.shape), hidden, hidden], False
        if kind != "mlp":
            h, w, c, channels_first = _image(spec, kind)
            for channels, kernel, stride in CONVOLUTIONS[kind]:
                convolutions.append(Convolution.create(next(keys), c, channels, kernel, stride))
                h, w, c = convolutions[-1].size(h), convolutions[-1].size(w), channels
            if min(h, w) < 1:
                raise SurveyorError(
                    f"Images of shape {spec.shape} are too small for the {kind} torso; "
                    "minatar needs 3 × 3 pixels and nature 36 × 36."
                )
            widths = [h * w * c, hidden]
        layers = tuple(Dense.create(next(keys), *pair) for pair in itertools.pairwise(widths))
        return cls(tuple(convolutions), layers, scale, channels_first, len(spec.shape))

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

    def flatten(self, obs: Obs) -> tuple[Shaped[Array, "b ..."], tuple[int, ...]]:
        """Return observations along one batch axis, and the shape of the batch axes before."""
        lead = obs.shape[: obs.ndim - self.dimensions]
        return obs.reshape(-1, *obs.shape[len(lead) :]), lead


def choose(spec: EnvSpec) -> str:
    """Return the name of the torso that suits these observations."""
    side = sorted(spec.shape)[1] if len(spec.shape) == 3 else 0  # the shorter one of an image
    return "nature" if side >= 36 else "minatar" if side >= 3 else "mlp"


def _image(spec: EnvSpec, kind: str) -> tuple[int, int, int, bool]:
    """Return height, width and channels of images, and whether channels come first."""
    if len(spec.shape) != 3:
        raise SurveyorError(
            f"The {kind} torso is for images, of three axes, and observations have shape "
            f"{spec.shape}; mlp would do."
        )
    first, second, third = spec.shape
    if first != second and (second == third or first < third):
        return second, third, first, True
    return first, second, third, False
