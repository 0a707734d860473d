"""`surveyor paper`: the figures, tables and propositions of the paper."""

import sys
import time

from surveyor.cli.options import parse
from surveyor.errors import unknown
from surveyor.paper.results import REGISTRY, RESULTS


def usage() -> str:
    """Return the text of `surveyor paper --help`."""
    lines = [f"  surveyor paper {result.name:13} {result.help}" for result in RESULTS]
    foot = """\
Each writes data, a text table and, for figures, a picture. --quick takes minutes. A command that
was stopped continues when it is repeated; finished runs are not trained again.
surveyor paper RESULT --help describes the options."""
    head = "surveyor paper: reproduce the paper, one result at a time"
    return "\n".join([head, "", *lines, "", foot])


def main(argv: list[str]) -> int:
    """Run `surveyor paper`; return the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] not in REGISTRY:
        raise unknown("result of the paper", argv[0], REGISTRY)
    result = REGISTRY[argv[0]]
    options = parse(result.options, argv[1:], f"surveyor paper {result.name}")
    began = time.monotonic()
    from surveyor.paper.studies import StoppedError  # not before: imports JAX

    try:
        result.load()(options)
    except StoppedError:
        print("Stopped; everything is saved. Rerun the same command to continue.", file=sys.stderr)
        return 130
    print(f"{time.monotonic() - began:.0f} s.", file=sys.stderr)
    return 0
