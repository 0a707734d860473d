"""`surveyor status`."""

import dataclasses

from tyro.conf import Positional

from surveyor.cli.options import parse
from surveyor.runs import storage
from surveyor.sweeps import status


@dataclasses.dataclass(frozen=True)
class Status:
    """Show the state of the runs in a folder: done, running, stopped, waiting or failed."""

    folder: Positional[str]
    """The folder, or its URL."""


def main(argv: list[str]) -> int:
    """Run `surveyor status`."""
    options = parse(Status, argv, "surveyor status")
    standings = status.read_all(storage.at(options.folder))
    print("\n".join(status.lines(standings)))
    return 0
