"""The page: one HTML file with all that it needs."""

import importlib.util
import json
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

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
