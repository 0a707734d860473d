"""Arrays and pictures as text, for a page."""

import base64
import struct
import zlib
from typing import Any

import numpy as np

LARGEST = 160
"""Pixels along the shorter side of a picture: it has fewer than twice as many."""
KINDS = {"float32": "f4", "int32": "i4", "int8": "i1"}


def packed(array: Any) -> dict[str, Any]:
    """An array of numbers, for the page's `unpack`."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype != np.int8:
        array = array.astype(np.int32)
    data = base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode()
    return {"type": KINDS[array.dtype.name], "shape": list(array.shape), "data": data}


def picture(pixels: np.ndarray) -> str:
    """A picture (rows, columns, red green blue) as the address of a PNG, no larger than is
    needed."""
    stride = max(1, min(pixels.shape[:2]) // LARGEST)
    pixels = np.ascontiguousarray(_coloured(pixels)[::stride, ::stride])
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def part(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows.tobytes())) + part(b"IEND", b"")
    png = b"\x89PNG\r\n\x1a\n" + body
    return "data:image/png;base64," + base64.b64encode(png).decode()


def image_of(obs: np.ndarray) -> np.ndarray:
    """A picture of an observation with three axes: colours as they are, channels that are on or off
    as colours, else the last of several frames in grey."""
    from surveyor.runs.film import coloured

    if obs.dtype == bool:
        return coloured(obs)
    if obs.shape[-1] == 3:
        return obs
    return obs[-1] if obs.shape[0] < obs.shape[-1] else obs[..., -1]


def _coloured(pixels: np.ndarray) -> np.ndarray:
    """Three bytes for each pixel, of grey or of colours, of bytes or of floats."""
    if pixels.dtype != np.uint8:
        low, high = float(np.min(pixels)), float(np.max(pixels))
        pixels = (255 * (pixels - low) / max(high - low, 1e-9)).astype(np.uint8)
    if pixels.ndim == 2 or pixels.shape[2] < 3:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], -1)[..., :1], 3, axis=2)
    return pixels[..., :3]
