"""Runs and beliefs in a browser: one HTML file, or a live page."""

from pathlib import Path
from typing import Any

from surveyor.errors import SurveyorError


def write(
    source: str | Path, out: str | Path | None = None, *, env: Any = None, episodes: bool = True
) -> Path:
    """Write the report of a run's folder, or of a folder of runs; returns where it is.

    A run on images is played for one greedy episode, in `env` where its environment was given as
    an object (or a function) and so cannot be made from a name.
    """
    from surveyor.report import collect, page

    local = Path() if "://" in str(source) else Path(source)
    out = local / "report.html" if out is None else Path(out)
    if out.is_dir():
        raise SurveyorError(f"'{out}' is a folder; --out takes the name of a file.")
    if out.exists() and not out.is_file():
        raise SurveyorError(f"'{out}' is no ordinary file, and a report would replace it.")
    page.plotly()  # before the work: it may be missing
    return page.write(collect.collect(source, out, episodes=episodes, env=env), out)
