"""Draws in proportion to sizes."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from surveyor.types import HostArrays


def drawn(
    sizes: Float[HostArrays, " n"], u: Float[HostArrays, " b"]
) -> tuple[Int[HostArrays, " b"], Any]:
    """Draw places in proportion to their sizes, by uniform numbers; return the sum of sizes too.

    First a block of √n places, then one of them: running sums of all sizes would take JAX three
    times as long. Rounding of the sums may draw a place of size 0, once in millions.
    """
    xp: Any = np if isinstance(sizes, np.ndarray) else jnp
    side = math.isqrt(sizes.size - 1) + 1
    # NumPy adds up one by one, for which a million floats are too many; JAX does it in a tree.
    exact = {"dtype": np.float64} if xp is np else {}
    blocks = xp.pad(sizes, (0, side * side - sizes.size)).reshape(side, side)
    each = xp.sum(blocks, axis=1, **exact)
    sums = xp.cumsum(each)
    block = xp.minimum(xp.searchsorted(sums, u * sums[-1], side="right"), side - 1)
    rest = u * sums[-1] - (sums[block] - each[block])
    inner = xp.cumsum(blocks[block], axis=1, **exact)
    place = xp.minimum(xp.sum(inner <= rest[:, None], axis=1), side - 1)
    return xp.minimum(block * side + place, sizes.size - 1), sums[-1]
