"""`surveyor report`."""

import dataclasses
from pathlib import Path

from tyro.conf import Positional

from surveyor.cli.options import Flag, parse


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML file that shows how runs learnt, what agents believed and how surely.

    It needs no network and opens from disk.
    """

    folder: Positional[str]
    """A run's folder, or a folder of runs, such as that of a sweep, or its URL."""
    out: Path | None = None
    """Where it goes: by default report.html in the folder."""
    no_episode: Flag = False
    """Do not play an episode where observations are images."""


def main(argv: list[str]) -> int:
    """Run `surveyor report`."""
    from surveyor.report import write

    options = parse(Report, argv, "surveyor report")
    path = write(options.folder, options.out, episodes=not options.no_episode)
    print(f"The report is {path}")
    return 0
