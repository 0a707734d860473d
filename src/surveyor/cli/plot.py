"""`surveyor plot`."""

import json
import sys
from pathlib import Path
from typing import Literal

from surveyor import drawing
from surveyor.cli.options import Positional, command
from surveyor.errors import SurveyorError, require_folder


@command
def main(
    folder: Positional[str], out: Path | None = None, format: Literal["png", "pdf", "svg"] = "png"
) -> None:
    """Draw learning curves with 95% intervals, performance profiles and interquartile means.

    The scores are written as a table too.

    Args:
        folder: The folder, or its URL.
        out: Folder for the pictures and the table; by default the folder plots in it.
        format: Format of the pictures.
    """
    drawing.require_matplotlib()
    if out is not None and (suffix := out.suffix[1:].lower()) in drawing.FORMATS:
        instead = f"--out {out.with_suffix('')} --format {suffix}"
        raise SurveyorError(f"--out takes a folder, since there are several pictures: {instead}")
    require_folder(folder)
    from surveyor.runs import storage
    from surveyor.sweeps import pictures, status, summary

    where = storage.at(folder)
    statuses = status.read_all(where)
    for each in statuses:
        if each.state != "waiting" and not each.config:
            print(f"{each.name} is left out: {each.reason}", file=sys.stderr)
    found = summary.curves(where, statuses)
    out = out or Path("" if "://" in folder else folder) / "plots"
    every = list(dict.fromkeys(label for label, _ in found))
    try:
        scores = summary.summarise(found)
    except SurveyorError:  # nothing has ended: there are curves all the same
        drawn = pictures.curves(found, every[: pictures.SHOWN], out / f"curves.{format}")
        print(f"Written: {drawn}", file=sys.stderr)
        raise
    shown = summary.best(scores, pictures.SHOWN)
    written = [pictures.curves(found, shown, out / f"curves.{format}")]
    if (picture := pictures.profiles(scores, shown, out / f"profiles.{format}")) is not None:
        written.append(picture)
    lines = summary.lines(scores)
    if len(shown) < len(every):
        lines += ["", f"The pictures show the best {len(shown)} of {len(every)}."]
    text = "\n".join(lines)
    (out / "summary.md").write_text(text + "\n", "utf-8")
    (out / "summary.json").write_text(json.dumps(scores.scores, indent=1) + "\n", "utf-8")
    print(text)
    print(f"Written: {', '.join(map(str, written))}, {out / 'summary.md'}", file=sys.stderr)
