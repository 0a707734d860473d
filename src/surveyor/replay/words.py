"""Bytes of a row as 32-bit words: on a CPU XLA gathers element by element, so words are faster."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped, UInt32

from surveyor.types import EnvSpec

BYTES = 4
"""Bytes of a word."""


class Words(NamedTuple):
    """Packing of byte frames into 32-bit words, for a replay of JAX arrays."""

    shape: tuple[int, ...]
    """Shape of a frame."""
    dtype: str

    @classmethod
    def of(cls, spec: EnvSpec) -> "Words | None":
        """Return the words of this environment's frames; None if they are no bytes."""
        fits = spec.frame and np.dtype(spec.dtype).itemsize == 1
        return cls(spec.frame, spec.dtype) if fits else None

    @property
    def length(self) -> int:
        """Words of a frame; the last one may be padded."""
        return -(-math.prod(self.shape) // BYTES)

    def pack(self, frames: Shaped[Array, "..."]) -> UInt32[Array, "*b words"]:
        """Return frames, whose axes come last, as words."""
        lead = frames.shape[: frames.ndim - len(self.shape)]
        flat = frames.reshape(*lead, -1).astype(jnp.uint8)
        padding = [(0, 0)] * len(lead) + [(0, BYTES * self.length - flat.shape[-1])]
        words = jnp.pad(flat, padding).reshape(*lead, self.length, BYTES)
        return jax.lax.bitcast_convert_type(words, jnp.uint32)

    def unpack(self, words: UInt32[Array, "*b words"]) -> Any:
        """Return the frames of words."""
        words = jax.lax.optimization_barrier(words)  # else every byte looks up a word of its own
        lead = words.shape[:-1]
        flat = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(*lead, -1)
        return flat[..., : math.prod(self.shape)].reshape(*lead, *self.shape).astype(self.dtype)
