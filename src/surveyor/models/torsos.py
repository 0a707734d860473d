"""Torsos, from observations to a hidden layer: by name, or a user's own module."""

import itertools
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Shaped

from surveyor.errors import SurveyorError
from surveyor.models.layers import Convolution, Dense
from surveyor.models.own import Own, Static
from surveyor.types import PRNG, EnvSpec, Obs, channel_axis

TorsoName = Literal["auto", "mlp", "minatar", "board", "nature"]
"""Names of torsos. auto: nature for images of at least 36 × 36, board for at least 12 × 12, minatar
for smaller ones, mlp for everything else."""

CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "minatar": ((16, 3, 1),),
    "board": ((16, 4, 2),),
    "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
}
"""Channels, kernel and stride of each layer: Young and Tian (2019), ours with a quarter of its
places for large boards, Mnih et al. (2015)."""
LARGE_BOARD, PICTURE = 12, 36
"""Smallest sides for which auto takes board and nature."""


class Torso(eqx.Module):
    """Convolutions of the image if there is one, then dense layers, each followed by a ReLU.

    Numbers beside the image join it before the dense layers. An image of names of things has a
    channel for each name. Dense layers may be normalised (Ba et al. 2016).
    """

    convolutions: tuple[Convolution, ...]
    layers: tuple[Dense, ...]
    scale: float = eqx.field(static=True)
    """Factor on observations: 1/255 for bytes."""
    spec: EnvSpec = eqx.field(static=True)
    normalised: bool = eqx.field(static=True, default=False)
    """True if the units of a dense layer are brought to mean 0 and variance 1 before its ReLU."""

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        name: TorsoName,
        hidden: int,
        key: PRNG,
        depth: int = 0,
        *,
        normalised: bool = False,
    ) -> "Torso":
        """Draw the torso of this name for these observations.

        It has `depth` dense layers of width `hidden`; with 0 one after convolutions, else two.
        """
        keys = iter(jax.random.split(key, max(8, 3 + depth)))
        kind = choose(spec) if name == "auto" else name
        scale = 1 / 255 if spec.dtype == "uint8" and not spec.codes else 1.0
        convolutions, inputs = [], math.prod(spec.shape)
        if spec.codes:
            pixels = max(1, spec.stack) * math.prod(spec.picture) // len(spec.codes)
            inputs += pixels * (sum(spec.codes) - len(spec.codes))
        if kind != "mlp":
            shape, count = _image(spec, kind), max(1, spec.stack)
            axis = channel_axis(shape)
            h, w = (side for i, side in enumerate(shape) if i != axis)
            c = count * (sum(spec.codes) or (1 if axis is None else shape[axis]))
            beside = inputs - h * w * c
            for channels, kernel, stride in CONVOLUTIONS[kind]:
                dense = Dense.create(next(keys), kernel**2 * c, channels)
                convolutions.append(Convolution(dense, kernel, stride))
                h, w, c = convolutions[-1].size(h), convolutions[-1].size(w), channels
            if min(h, w) < 1:
                raise SurveyorError(
                    f"Images of shape {spec.shape} are too small for the {kind} torso; "
                    "minatar needs 3 × 3 pixels, board 4 × 4 and nature 36 × 36."
                )
            inputs = h * w * c + beside
        widths = [inputs, *[hidden] * (depth or (1 if convolutions else 2))]
        layers = tuple(Dense.create(next(keys), *pair) for pair in itertools.pairwise(widths))
        return cls(tuple(convolutions), layers, scale, spec, normalised)

    @property
    def width(self) -> int:
        """Length of the vector that it returns."""
        return len(self.layers[-1].bias)

    def __call__(self, obs: Shaped[Array, "b ..."]) -> Float[Array, "width b"]:
        x, scale = jnp.moveaxis(obs, 0, -1), self.scale
        beside = None
        if self.convolutions or self.spec.codes:
            x, beside = self._split(x)
            x = one_hot(x, self.spec.codes)
        for convolution in self.convolutions:
            x, scale = convolution(x, scale), 1.0
        x = x.reshape(-1, len(obs)).astype(jnp.float32) * scale
        if beside is not None:
            x = jnp.concatenate([x, beside.astype(jnp.float32) * self.scale])
        for layer in self.layers:
            x = layer(x)
            x = jax.nn.relu(jax.nn.standardize(x, axis=0) if self.normalised else x)
        return x

    def _split(self, x: Shaped[Array, "... b"]) -> tuple[Shaped[Array, "c h w b"], Array | None]:
        """Return the image, with the channels of all frames first, and the numbers beside it."""
        spec, b = self.spec, x.shape[-1]
        frame = spec.frame
        shape, beside = spec.picture or frame, None
        if len(frame) == 1:
            x = x.reshape(-1, *frame, b)
            size = math.prod(shape)
            beside = x[:, size:].reshape(-1, b)
            x = x[:, :size].reshape(-1, *shape, b)
        elif not spec.stack:
            x = x[None]
        axis = channel_axis(shape)
        if axis == 2:
            x = jnp.moveaxis(x, 3, 1)
        if axis is not None:
            x = x.reshape(-1, *x.shape[2:])
        return x, beside

    def flatten(self, obs: Obs) -> tuple[Shaped[Array, "b ..."], tuple[int, ...]]:
        """Return observations along one batch axis, and the shape of the batch axes before."""
        return flatten(obs, self.spec)


def one_hot(image: Shaped[Array, "c h w b"], codes: tuple[int, ...]) -> Shaped[Array, "c2 h w b"]:
    """Return a channel for each name in each channel, as bytes; without names the image itself."""
    if not codes:
        return image
    counts = codes * (len(image) // len(codes))  # of all frames
    names = [jnp.arange(count)[:, None, None, None] for count in counts]
    each = [channel == known for channel, known in zip(image, names, strict=True)]
    return jnp.concatenate(each)


class OwnTorso(eqx.Module):
    """A user's module, which maps one observation to a vector, for a batch of observations."""

    module: PyTree
    """Its arrays."""
    static: Any = eqx.field(static=True)
    """All of it that is no array."""
    spec: EnvSpec = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @classmethod
    def create(cls, spec: EnvSpec, own: Own) -> "OwnTorso":
        """Return a user's module with its own weights; raise if it does not fit."""
        arrays, static = eqx.partition(own.module, eqx.is_array)
        arrays = jax.tree.map(jnp.copy, arrays)  # the user's own are not to be donated
        torso = cls(arrays, Static(static), spec, 0)
        name = type(own.module).__name__
        seen = f"one observation of shape {spec.shape}"
        try:
            found = jax.eval_shape(torso._one, jax.ShapeDtypeStruct(spec.shape, spec.dtype))
        except Exception as error:  # a user's module may raise anything
            reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
            raise SurveyorError(f"The torso {name} failed on {seen}: {reason}.") from error
        shape, kind = getattr(found, "shape", None), str(getattr(found, "dtype", ""))
        if shape is None or len(shape) != 1 or shape[0] < 1 or not kind.startswith("float"):
            given = type(found).__name__ if shape is None else f"shape {shape} of {kind}"
            said = f"must map {seen} to a vector of floats, not to {given}"
            raise SurveyorError(f"The torso {name} {said}.")
        return cls(arrays, Static(static), spec, shape[0])

    def __call__(self, obs: Shaped[Array, "b ..."]) -> Float[Array, "width b"]:
        return jax.vmap(self._one)(obs).T.astype(jnp.float32)

    def _one(self, obs: Obs) -> Any:
        module = eqx.combine(self.module, self.static.tree)
        if self.spec.tabular:
            return module(obs)
        return module(obs.astype(jnp.float32) / (255.0 if self.spec.dtype == "uint8" else 1.0))

    def flatten(self, obs: Obs) -> tuple[Shaped[Array, "b ..."], tuple[int, ...]]:
        """Return observations along one batch axis, and the shape of the batch axes before."""
        return flatten(obs, self.spec)


def make_torso(
    spec: EnvSpec,
    torso: "TorsoName | Own",
    hidden: int,
    key: PRNG,
    depth: int = 0,
    *,
    normalised: bool = False,
) -> Torso | OwnTorso:
    """Return the torso of a name, or a user's own."""
    if isinstance(torso, Own):
        return OwnTorso.create(spec, torso)
    return Torso.create(spec, torso, hidden, key, depth, normalised=normalised)


def flatten(obs: Obs, spec: EnvSpec) -> tuple[Shaped[Array, "b ..."], tuple[int, ...]]:
    """Return observations along one batch axis, and the shape of the batch axes before."""
    lead = obs.shape[: obs.ndim - len(spec.shape)]
    return obs.reshape(-1, *obs.shape[len(lead) :]), lead


def choose(spec: EnvSpec) -> str:
    """Return the name of the torso that suits these observations."""
    shape = spec.picture
    side = min(side for i, side in enumerate(shape) if i != channel_axis(shape)) if shape else 0
    if side >= LARGE_BOARD:
        return "nature" if side >= PICTURE else "board"
    return "minatar" if side >= 3 else "mlp"


def _image(spec: EnvSpec, kind: str) -> tuple[int, ...]:
    """Return the shape of the image in a frame."""
    shape = spec.picture or (spec.frame if len(spec.frame) in (2, 3) else ())
    if not shape:
        raise SurveyorError(
            f"The {kind} torso is for images, of two or three axes, and observations have shape "
            f"{spec.shape}; mlp would do."
        )
    return shape
