"""Reports of runs and beliefs for the browser: one HTML file, or a live page."""

from pathlib import Path
from typing import Any

from surveyor.errors import SurveyorError


def write(
    source: str | Path, out: str | Path | None = None, *, env: Any = None, episodes: bool = True
) -> Path:
    """Write a report as one HTML file; return its path.

    **Arguments:**

    - `source`: a run's folder, a folder of runs, or a URL of the latter.
    - `out`: the file; report.html in the folder if None.
    - `env`: the environment to play in, if it was passed as an object to `train`.
    - `episodes`: True to play a greedy episode if there is a single run on images.
    """
    from surveyor.report import collect, page

    local = Path() if "://" in str(source) else Path(source)
    out = local / "report.html" if out is None else Path(out)
    if out.is_dir():
        raise SurveyorError(f"'{out}' is a folder; --out takes the name of a file.")
    if out.exists() and not out.is_file():
        raise SurveyorError(f"'{out}' is not a regular file, and a report would replace it.")
    page.plotly()  # fail before the work if it is missing
    return page.write(collect.collect(source, out, episodes=episodes, env=env), out)
