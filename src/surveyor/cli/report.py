"""`surveyor report` and `surveyor watch`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from surveyor.cli.options import parse
from surveyor.errors import SurveyorError


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML file that shows a run, or all runs of a folder: how they learnt, what the
    agent believed and how sure it was. It needs no network and opens from disk."""

    folder: Positional[str]
    """A run's folder, or a folder of runs, such as that of a sweep, or its URL."""
    out: Path | None = None
    """Where it goes: by default report.html in the folder."""
    no_episode: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Do not play an episode where observations are images."""


@dataclasses.dataclass(frozen=True)
class Watch:
    """Show the same page while training goes on, at an address of this machine alone. Ctrl-C ends
    it; the run is not touched."""

    run: Positional[Path]
    """A run's folder, or a folder of runs."""
    port: int = 0
    """The port: by default one that is free."""


def report(argv: list[str]) -> int:
    """`surveyor report`."""
    from surveyor.report import write

    options = parse(Report, argv, "surveyor report")
    path = write(options.folder, options.out, episodes=not options.no_episode)
    print(f"The report is {path}")
    return 0


def watch(argv: list[str]) -> int:
    """`surveyor watch`."""
    from surveyor.report import live

    options = parse(Watch, argv, "surveyor watch")
    if not 0 <= options.port < 65536:
        raise SurveyorError(f"port must be from 0 to 65535, not {options.port}.")
    return live.serve(options.run, options.port)
