"""Parts that all pictures share. Needs the `plots` extra: pip install "surveyor[plots]"."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyorError, missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any  # Matplotlib is imported when it is needed

BLUE, ORANGE, GREY = "#1f5fa8", "#e07b1a", "#8a8a8a"
RED, GREEN, PURPLE = "#c0392b", "#2e8b57", "#7d4fa3"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, "#8c6d46", "#3aa6b9", "#c45a95", GREY)
"""Colours of the lines in one picture, in order."""

FORMATS = ("png", "pdf", "svg")
"""Formats of the pictures that commands write."""
VECTOR: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "surveyor"}
"""Matplotlib's settings for text as text, and for names in SVG that are not random."""
UNDATED = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
"""Metadata without the time of writing, by suffix."""


def require_matplotlib() -> None:
    """Raise `SurveyorError` if Matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise missing("Matplotlib", "plots", "A picture")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def open_frame(axes: Axes) -> None:
    """Hide the upper and right side of a panel's frame."""
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: str | Path) -> Path:
    """Write a picture in the format of its suffix, PNG without one; return the file's path.

    Make its folder. Text stays text in PDF and SVG, and equal pictures are equal files.
    """
    import matplotlib

    path = Path(path)
    path = path if path.suffix else path.with_suffix(".png")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(VECTOR):
            figure.savefig(path, dpi=150, metadata=UNDATED.get(path.suffix.lower()))
    except (OSError, ValueError) as error:
        raise SurveyorError(f"The picture '{path}' cannot be written: {error}.") from None
    return path
