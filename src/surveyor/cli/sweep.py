"""`surveyor sweep`, `surveyor status` and `surveyor plot`."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from surveyor import plots
from surveyor.cli.options import parse
from surveyor.errors import SurveyorError
from surveyor.launch.engine import Engine
from surveyor.launch.progress import clock
from surveyor.launch.work import RunOptions
from surveyor.runs import storage
from surveyor.sweeps import spec, status
from surveyor.sweeps.estimate import estimates, in_bytes
from surveyor.sweeps.spec import Planned
from surveyor.sweeps.train import train

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep(Engine):
    """Train every run of a specification. Given again it skips what is finished and goes on with
    what is not, so it can be stopped and started at will."""

    spec: Positional[Path]
    """The specification, a TOML file; experiments/ has the paper's own."""
    out: str = "runs"
    """Where the run folders go: a folder (with ray, one that all nodes share), or with ray any
    fsspec URL, such as s3://bucket/folder."""
    beliefs: Flag = False
    """Write down now and then what each agent believes, which `surveyor report RUN` shows."""
    dry_run: Flag = False
    """List the runs with an estimate of time, memory and disk, and train nothing."""


@dataclasses.dataclass(frozen=True)
class Status:
    """Say how the runs in a folder stand: done, running, stopped, waiting or failed, and why."""

    folder: Positional[str]
    """The folder, or its URL."""


@dataclasses.dataclass(frozen=True)
class Plot:
    """Draw what the runs in a folder came to: learning curves with 95% intervals, performance
    profiles and interquartile means; and write the scores as a table."""

    folder: Positional[str]
    """The folder, or its URL."""
    out: Path | None = None
    """Where the pictures go: by default into the folder plots in it."""


def sweep(argv: list[str]) -> int:
    """`surveyor sweep`."""
    options = parse(Sweep, argv, "surveyor sweep")
    planned = spec.read(options.spec)
    if options.dry_run:
        print("\n".join(_forecast(planned)))
        return 0
    results = train(planned, options.out, options, RunOptions(beliefs=options.beliefs))
    failed = [result for result in results if result and "failure" in result]
    ended = sum(bool(result and result["finished"]) for result in results)
    print(f"{ended} of {len(planned)} runs are done: surveyor status {options.out} says more.")
    if failed:
        return 1
    if ended < len(planned):
        print("Stopped; everything is saved. Give the same command to go on.", file=sys.stderr)
        return 130
    return 0


def show_status(argv: list[str]) -> int:
    """`surveyor status`."""
    options = parse(Status, argv, "surveyor status")
    standings = status.read_all(storage.at(options.folder))
    print("\n".join(status.lines(standings)))
    return 0


def plot(argv: list[str]) -> int:
    """`surveyor plot`."""
    from surveyor.sweeps import pictures, summary

    options = parse(Plot, argv, "surveyor plot")
    plots.require_matplotlib()
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


def _forecast(planned: list[Planned]) -> list[str]:
    """A line for each run, and all of them together."""
    every = estimates([run.config for run in planned])
    width = max(len(run.config.name) for run in planned)
    lines = []
    for run, found in zip(planned, every, strict=True):
        needs = f"{in_bytes(found.memory)} of memory, {in_bytes(found.disk)} of disk"
        lines.append(
            f"{run.config.name:{width}}  about {clock(found.seconds)}, {needs}  {run.label}"
        )
    total, disk = sum(found.seconds for found in every), sum(found.disk for found in every)
    runs = "1 run" if len(planned) == 1 else f"{len(planned)} runs"
    said = f"{runs}, about {clock(total)} of one core, {in_bytes(disk)} of disk."
    return [*lines, said]
