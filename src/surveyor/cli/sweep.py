"""`surveyor sweep`."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from surveyor.cli.options import Flag, Positional, parse
from surveyor.launch.engine import Engine
from surveyor.sweeps.text import read_toml

if TYPE_CHECKING:
    from surveyor.sweeps.spec import Planned


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep(Engine):
    """Train every run of a specification.

    The same command again skips finished runs and continues the others.
    """

    spec: Positional[Path]
    """The specification, a TOML file; experiments/ has the paper's own."""
    out: str = "runs"
    """Where the run folders go: a folder (with ray, one that all nodes share), or with ray any
    fsspec URL, such as s3://bucket/folder."""
    beliefs: Flag = False
    """Record snapshots of what each agent believes, which `surveyor report RUN` shows."""
    dry_run: Flag = False
    """List the runs with an estimate of time, memory and disk, and train nothing."""


def main(argv: list[str]) -> int:
    """Run `surveyor sweep`."""
    options = parse(Sweep, argv, "surveyor sweep")
    content = read_toml(options.spec)
    from surveyor.launch.work import RunOptions  # not before: imports JAX
    from surveyor.sweeps import spec
    from surveyor.sweeps.train import train

    planned = spec.plan(content, str(options.spec))
    if options.dry_run:
        print("\n".join(_forecast(planned)))
        return 0
    results = train(planned, options.out, options, RunOptions(beliefs=options.beliefs))
    ended = sum(bool(result and result["finished"]) for result in results)
    print(f"{ended} of {len(planned)} runs are done: surveyor status {options.out} says more.")
    if any(result and "failure" in result for result in results):
        return 1
    if ended < len(planned):
        print("Stopped; everything is saved. Rerun the same command to continue.", file=sys.stderr)
        return 130
    return 0


def _forecast(planned: "list[Planned]") -> list[str]:
    """Return a line for each run, and one for all."""
    from surveyor.launch.progress import clock
    from surveyor.sweeps.estimate import estimates, in_bytes

    every = estimates([run.config for run in planned])
    width = max(len(run.config.name) for run in planned)
    lines = []
    for (config, label), (seconds, memory, disk) in zip(planned, every, strict=True):
        needs = f"{in_bytes(memory)} of memory, {in_bytes(disk)} of disk"
        lines.append(f"{config.name:{width}}  about {clock(seconds)}, {needs}  {label}")
    total, disk = sum(found.seconds for found in every), sum(found.disk for found in every)
    runs = "1 run" if len(planned) == 1 else f"{len(planned)} runs"
    return [*lines, f"{runs}, about {clock(total)} of one core, {in_bytes(disk)} of disk."]
