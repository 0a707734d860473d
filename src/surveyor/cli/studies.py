"""Commands that run one of several long studies by name: `surveyor paper` and `surveyor bench`."""

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from surveyor.cli.options import parse
from surveyor.errors import StoppedError, unknown


@runtime_checkable
class Study(Protocol):
    """One study, as the command line knows it."""

    @property
    def name(self) -> str:
        """Return the name on the command line."""
        ...

    @property
    def help(self) -> str:
        """Return one line of help: the question that the study answers."""
        ...

    @property
    def options(self) -> type[Any]:
        """Return the dataclass of its command-line options."""
        ...

    def load(self) -> Callable[[Any], None]:
        """Return the function that runs it."""
        ...


@dataclasses.dataclass(frozen=True)
class Command:
    """A command with a study for each word that may follow it."""

    name: str
    kind: str
    """Noun for one study, such as benchmark; errors and the help use it."""
    does: str
    """Purpose of the command, for the first line of its help."""
    writes: str
    """Files that each study writes, for the end of its help."""
    studies: Mapping[str, Study]

    def usage(self) -> str:
        """Return the text of `--help`."""
        words, width = f"surveyor {self.name}", max(map(len, self.studies))
        lines = [f"  {words} {study.name:{width}}  {study.help}" for study in self.studies.values()]
        foot = f"{words} {self.kind.split()[0].upper()} --help describes the options."
        return "\n".join([f"{words}: {self.does}", "", *lines, "", self.writes, foot])

    def main(self, argv: list[str]) -> int:
        """Run the study that the first word names; return the exit code."""
        if not argv or argv[0] in ("-h", "--help"):
            print(self.usage())
            return 0 if argv else 2
        if argv[0] not in self.studies:
            raise unknown(self.kind, argv[0], self.studies)
        study = self.studies[argv[0]]
        options = parse(study.options, argv[1:], f"surveyor {self.name} {study.name}")
        began = time.monotonic()
        try:
            study.load()(options)
        except StoppedError:
            said = "Stopped; everything is saved. Rerun the same command to continue."
            print(said, file=sys.stderr)
            return 130
        print(f"{time.monotonic() - began:.0f} s.", file=sys.stderr)
        return 0
