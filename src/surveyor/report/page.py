"""The page: one HTML file with all that it needs, arrays and pictures as text in it."""

import base64
import importlib.util
import json
import struct
import zlib
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from surveyor.envs.functional import coloured
from surveyor.errors import missing
from surveyor.runs.checkpoint import write_atomically


def render(data: str) -> str:
    """Return the whole page around data that is JSON."""
    assets = resources.files("surveyor.report") / "assets"
    names = ("page.html", "report.css", "report.js")
    page, style, script = ((assets / name).read_text("utf-8") for name in names)
    return Template(page).substitute(STYLE=style, SCRIPT=script, PLOTLY=plotly(), DATA=data)


def write(data: dict[str, Any], path: Path) -> Path:
    """Write the page of some data to a file; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, render(as_json(data)).encode())
    return path


def as_json(data: dict[str, Any]) -> str:
    """Return data as JSON that cannot end the script element around it, with null for NaN."""
    text = json.dumps(_finite(data), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plotly() -> str:
    """Return the plotting library's script; raise `SurveyorError` if the package is missing."""
    if importlib.util.find_spec("plotly") is None:
        raise missing("plotly", "report", "A report")
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {_finite(str(name)): _finite(each) for name, each in value.items()}
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def packed(array: Any) -> dict[str, Any]:
    """Return an array of numbers in the form that the page's `unpack` reads."""
    array = np.ascontiguousarray(array)
    kind = "f4" if array.dtype.kind == "f" else "i1" if array.dtype == np.int8 else "i4"
    data = base64.b64encode(array.astype(f"<{kind}").tobytes()).decode()
    return {"type": kind, "shape": list(array.shape), "data": data}


def picture(pixels: np.ndarray) -> str:
    """Return a picture (rows, columns, colours) as the data URL of a PNG, reduced if large."""
    stride = max(1, min(pixels.shape[:2]) // 160)  # at least 160 pixels stay of the shorter side
    pixels = np.ascontiguousarray(_coloured(pixels)[::stride, ::stride])
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def part(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows.tobytes())) + part(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def image_of(obs: np.ndarray) -> np.ndarray:
    """Return colours as they are, channels of truth values as colours, else the last frame."""
    if obs.dtype == bool:
        return coloured(obs)
    if obs.ndim == 2 or obs.shape[-1] == 3:
        return obs
    return obs[-1] if obs.shape[0] < obs.shape[-1] else obs[..., -1]


def _coloured(pixels: np.ndarray) -> np.ndarray:
    """Return three bytes for each pixel of a picture in grey or colours, of bytes or floats."""
    if pixels.dtype != np.uint8:
        low, high = float(np.min(pixels)), float(np.max(pixels))
        pixels = (255 * (pixels - low) / max(high - low, 1e-9)).astype(np.uint8)
    if pixels.ndim == 2 or pixels.shape[2] < 3:
        pixels = np.repeat(pixels.reshape(*pixels.shape[:2], -1)[..., :1], 3, axis=2)
    return pixels[..., :3]
