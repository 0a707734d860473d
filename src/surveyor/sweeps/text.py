"""Specifications and results as text: TOML, Markdown tables and files."""

import json
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from surveyor.errors import SurveyorError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raise `SurveyorError` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SurveyorError(f"'{path}' cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SurveyorError(f"'{path}' is not TOML: {error}.") from None


def table(header: list[str], rows: Iterable[list[Any]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def write(out: Path, name: str, data: Any, lines: list[str], picture: Path | None = None) -> None:
    """Write a result as `name`.json and `name`.md, print its text and the paths of all files."""
    text = "\n".join(lines) + "\n"
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        (out / f"{name}.md").write_text(text, "utf-8")
    except OSError as error:
        said = f"cannot be written: {error.strerror}"
        raise SurveyorError(f"The output folder '{out}' {said}.") from None
    also = "" if picture is None else f", {picture}"
    print(f"Written: {out / name}.json, {out / name}.md{also}", file=sys.stderr)
    print(text)
