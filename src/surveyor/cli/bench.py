"""`surveyor bench`: agents beside each other on the field's benchmarks."""

import sys
import time

from surveyor.bench import BENCHES, REGISTRY
from surveyor.cli.options import parse
from surveyor.errors import unknown


def usage() -> str:
    """Return the text of `surveyor bench --help`."""
    lines = [f"  surveyor bench {bench.name:10} {bench.help}" for bench in BENCHES]
    foot = """\
Each trains every agent with several seeds on all cores, and writes a line for each run, a table
and a picture. --quick takes minutes. A command that was stopped continues when it is repeated;
runs that have ended are not trained again.
surveyor bench NAME --help describes the options."""
    head = "surveyor bench: compare agents on one benchmark"
    return "\n".join([head, "", *lines, "", foot])


def main(argv: list[str]) -> int:
    """Run `surveyor bench`; return the exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] not in REGISTRY:
        raise unknown("benchmark", argv[0], REGISTRY)
    bench = REGISTRY[argv[0]]
    options = parse(bench.options, argv[1:], f"surveyor bench {bench.name}")
    began = time.monotonic()
    from surveyor.bench.study import StoppedError  # not before: imports JAX

    try:
        bench.load()(options)
    except StoppedError:
        print("Stopped; everything is saved. Rerun the same command to continue.", file=sys.stderr)
        return 130
    print(f"{time.monotonic() - began:.0f} s.", file=sys.stderr)
    return 0
