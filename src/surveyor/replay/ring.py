"""The rows of a replay that are written once, which checkpoints append to a log."""

from typing import Any

import equinox as eqx
from jaxtyping import Int

from surveyor.types import HostArrays


class Ring(eqx.Module):
    """Rows that stay as they were written until newer ones take their place.

    Row n of the whole run is row n % capacity of every array; further rows of an array are not part
    of the ring.
    """

    arrays: dict[str, Any]
    """Arrays by name, all of NumPy or all of JAX."""
    written: Int[HostArrays, ""]
    """Rows written so far, also those that were overwritten."""
    capacity: int = eqx.field(static=True)
    """Largest number of rows."""
