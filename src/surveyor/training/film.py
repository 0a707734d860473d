"""Drawing observations, and ending a film."""

from typing import Any

import numpy as np


class EnoughError(Exception):
    """Raised by a film's viewer to end it."""


def coloured(channels: Any) -> np.ndarray:
    """Return a picture of an observation whose channels are on or off: a colour for each."""
    count = channels.shape[-1]
    hue = np.arange(count) / count
    colours = 0.5 + 0.5 * np.cos(2 * np.pi * (hue[:, None] + np.array([0.0, 1 / 3, 2 / 3])))
    shown = np.max(channels[..., None].astype(float) * colours, axis=2)
    return (255 * shown).astype(np.uint8)
