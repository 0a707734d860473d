"""`surveyor watch`."""

import dataclasses
from pathlib import Path

from tyro.conf import Positional

from surveyor.cli.options import parse
from surveyor.errors import SurveyorError


@dataclasses.dataclass(frozen=True)
class Watch:
    """Show the report's page while training goes on, at an address of this machine alone.

    Ctrl-C ends it; the run is not touched.
    """

    run: Positional[Path]
    """A run's folder, or a folder of runs."""
    port: int = 0
    """The port: by default one that is free."""


def main(argv: list[str]) -> int:
    """Run `surveyor watch`."""
    from surveyor.report import live

    options = parse(Watch, argv, "surveyor watch")
    if not 0 <= options.port < 65536:
        raise SurveyorError(f"port must be from 0 to 65535, not {options.port}.")
    return live.serve(options.run, options.port)
