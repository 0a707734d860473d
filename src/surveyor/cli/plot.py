"""`surveyor plot`."""

import dataclasses
import json
import sys
from pathlib import Path

from tyro.conf import Positional

from surveyor import drawing
from surveyor.cli.options import parse
from surveyor.errors import SurveyorError
from surveyor.runs import storage
from surveyor.sweeps import pictures, status, summary


@dataclasses.dataclass(frozen=True)
class Plot:
    """Draw learning curves with 95% intervals, performance profiles and interquartile means.

    The scores are written as a table too.
    """

    folder: Positional[str]
    """The folder, or its URL."""
    out: Path | None = None
    """Where the pictures go: by default into the folder plots in it."""


def main(argv: list[str]) -> int:
    """Run `surveyor plot`."""
    options = parse(Plot, argv, "surveyor plot")
    drawing.require_matplotlib()
    where = storage.at(options.folder)
    standings = status.read_all(where)
    if lost := [each.name for each in standings if each.state != "waiting" and not each.config]:
        print(f"Left out, for they cannot be read: {', '.join(lost)}.", file=sys.stderr)
    found = summary.curves(where, standings)
    remote = "://" in options.folder
    out = options.out or (Path("plots") if remote else Path(options.folder) / "plots")
    every = list(dict.fromkeys(label for label, _ in found))
    try:
        scores = summary.summarise(found)
    except SurveyorError:  # nothing has ended: there are curves all the same
        drawn = pictures.curves(found, every[: pictures.SHOWN], out / "curves.png")
        print(f"Written: {drawn}", file=sys.stderr)
        raise
    shown = summary.best(scores, pictures.SHOWN)
    written = [pictures.curves(found, shown, out / "curves.png")]
    if (picture := pictures.profiles(scores, shown, out / "profiles.png")) is not None:
        written.append(picture)
    lines = summary.lines(scores)
    if len(shown) < len(every):
        lines += ["", f"The pictures show the best {len(shown)} of {len(every)}."]
    text = "\n".join(lines)
    (out / "summary.md").write_text(text + "\n", "utf-8")
    (out / "summary.json").write_text(json.dumps(scores.scores, indent=1) + "\n", "utf-8")
    print(text)
    print(f"Written: {', '.join(map(str, written))}, {out / 'summary.md'}", file=sys.stderr)
    return 0
