"""Observations of several arrays as the one array that agents take."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from surveyor.types import EnvSpec, channel_axis

UNKNOWN = (-math.inf, math.inf)
CODE = (-1.0, 1.0)
"""Bounds of numbers that are scaled already, as one-hot codes are."""
WIDEST = 1e4
"""Bounds wider than this say nothing about the size of observations."""
NAMES = 16
"""Whole numbers from 0 to less than this in an image are names of things, not sizes."""


class Leaf(NamedTuple):
    """One array of an observation."""

    shape: tuple[int, ...]
    dtype: str
    """Type in the replay: bool, uint8 or float32."""
    low: np.ndarray
    """Bounds of each number, infinite where they are unknown."""
    high: np.ndarray
    whole: bool = False
    """True for whole numbers."""

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: Any, low: Any = None, high: Any = None) -> "Leaf":
        """Return the leaf of an array of a space with these bounds."""
        kind = np.dtype(dtype)
        low = np.broadcast_to(-np.inf if low is None else np.asarray(low, np.float64), shape)
        high = np.broadcast_to(np.inf if high is None else np.asarray(high, np.float64), shape)
        with np.errstate(invalid="ignore"):
            span = high - low
        useless = ~np.isfinite(span) | (span > WIDEST) | (span <= 0)
        whole = bool(np.issubdtype(kind, np.integer))
        if kind == np.dtype(bool) or (whole and shape and np.all((low == 0) & (high == 1))):
            return cls(shape, "bool", np.full(shape, CODE[0]), np.full(shape, CODE[1]))
        # 255 is the largest byte: it says nothing about what is in there.
        bytes_ = whole & (low == 0) & (high == 255)
        low = np.where(useless, -np.inf, low)
        high = np.where(useless | bytes_, np.inf, high)
        return cls(shape, "uint8" if kind == np.uint8 else "float32", low, high, whole)

    @property
    def image(self) -> tuple[int, ...]:
        """Its shape if it is an image, or ()."""
        return EnvSpec(0, 1, 0, self.shape, self.dtype).picture

    @property
    def codes(self) -> tuple[int, ...]:
        """Number of values of each channel, if it is an image of names of things, or ()."""
        if not self.image or not self.whole:
            return ()
        counts = [int(high) + 1 for low, high in self.bounds() if low == 0 and 1 < high < NAMES]
        return tuple(counts) if len(counts) == len(self.bounds()) else ()

    def bounds(self) -> list[tuple[float, float]]:
        """Return the bounds of each channel of an image, or of each number."""
        low, high = self.low, self.high
        if self.image:
            axes = tuple(
                axis for axis in range(len(self.shape)) if axis != channel_axis(self.shape)
            )
            low, high = np.min(low, axis=axes), np.max(high, axis=axes)
        return list(zip(np.ravel(low).tolist(), np.ravel(high).tolist(), strict=True))


class Packing(NamedTuple):
    """The layout of several arrays in one: an image first, then all other numbers.

    A single array stays as it is.
    """

    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    image: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    codes: tuple[int, ...]

    @classmethod
    def of(cls, leaves: Sequence[Leaf]) -> "Packing":
        """Return the packing of these arrays."""
        order = sorted(range(len(leaves)), key=lambda i: not leaves[i].image)
        first, rest = leaves[order[0]], [leaves[i] for i in order[1:]]
        flat = [leaf._replace(shape=(math.prod(leaf.shape),)) for leaf in rest]
        bounds = [pair for leaf in (first, *flat) for pair in leaf.bounds()]
        kinds = [(0.0, 1.0)] * (len(first.bounds()) if first.image else 0)
        kinds += [CODE] * (len(bounds) - len(kinds))
        scaled = bounds != kinds and any(pair != CODE for pair in bounds)
        dtypes = {leaf.dtype for leaf in leaves}
        mixed = "float32" if "float32" in dtypes else "uint8"
        size = sum(math.prod(leaf.shape) for leaf in leaves)
        return cls(
            tuple(order),
            (size,) if rest else first.shape,
            mixed if len(dtypes) > 1 else first.dtype,
            first.image,
            tuple(bounds) if scaled else (),
            first.codes,
        )

    def __call__(self, arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]], xp: Any) -> Any:
        """Return the arrays, each with the same axes of a batch in front, as one array."""
        if len(arrays) == 1:
            return arrays[0].astype(self.dtype)
        lead = arrays[0].shape[: arrays[0].ndim - len(shapes[0])]
        flat = [arrays[i].reshape(*lead, -1).astype(self.dtype) for i in self.order]
        return xp.concatenate(flat, axis=-1)

    def specify(self, actions: int, masked: bool = False) -> EnvSpec:
        """Return the spec of observations that are packed like this."""
        kind = (0, actions, 0, self.shape, self.dtype)
        seen = {"image": self.image, "bounds": self.bounds, "codes": self.codes}
        return EnvSpec(*kind, **seen, masked=masked)
