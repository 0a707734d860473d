"""`surveyor paper …`: the figures, tables and propositions of the paper, by command."""

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from surveyor.errors import SurveyorError, unknown
from surveyor.options import parse

USAGE = """\
surveyor paper: reproduce the paper, one result at a time

  surveyor paper fig2              episodes to learn the tree, for every algorithm
  surveyor paper fig3              how learning time grows with the chain
  surveyor paper propositions      what the theory predicts, and what is measured
  surveyor paper table             the hyperparameters of tables 2 and 3
  surveyor paper gridsearch tree   the paper's own hyperparameter search (or: chain)

Each writes data, a text table and a picture. --quick takes minutes. A command that was stopped
goes on where it was when it is given again, and a finished run is never repeated."""

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]


@dataclasses.dataclass(frozen=True)
class Options:
    """Reproduce one result of the paper."""

    quick: Flag = False
    """Fewer sizes, seeds and episodes: done in five minutes."""
    out: Path = Path("paper")
    """Where the results go; the runs behind them are in its folder runs."""


@dataclasses.dataclass(frozen=True)
class Figure3(Options):
    """Figure 3: learning time on the chain, L = 20 to 160 and, beyond the paper, 200 and 240."""

    paper_sizes_only: Flag = False
    """Stop at L = 160, as the paper had to."""


@dataclasses.dataclass(frozen=True)
class GridSearch(Options):
    """The paper's own hyperparameter search, and its winner."""

    problem: Positional[Literal["tree", "chain"]] = "tree"
    """Table 2 (tree, at L = 100) or table 3 (chain, at L = 20)."""
    seeds: int | None = None
    """Seeds for each point of the grid: 3 by default, 1 with --quick. The paper does not say."""
    algorithm: Literal["all", "SU", "B+P 1x", "B+P 25x"] = "all"
    """Which of the table's columns to search."""
    source: Literal["ours", "text", "released"] = "ours"
    """Whose SU: this library's preset, the paper's text, or its released code."""


def paper(argv: list[str]) -> int:
    """Run `surveyor paper …`."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if argv else 2
    if argv[0] not in COMMANDS:
        raise unknown("result of the paper", argv[0], COMMANDS)
    began = time.monotonic()
    from surveyor.experiments.studies import StoppedError

    try:
        COMMANDS[argv[0]](argv[1:])
    except StoppedError:
        print("Stopped; everything is saved. Give the same command to go on.", file=sys.stderr)
        return 130
    print(f"{time.monotonic() - began:.0f} s.", file=sys.stderr)
    return 0


def _fig2(argv: list[str]) -> None:
    from surveyor.experiments import fig2

    options = _parse("fig2", Options, argv)
    fig2.run(options.out, quick=options.quick)


def _fig3(argv: list[str]) -> None:
    from surveyor.experiments import fig3

    options = _parse("fig3", Figure3, argv)
    fig3.run(options.out, quick=options.quick, beyond=not options.paper_sizes_only)


def _propositions(argv: list[str]) -> None:
    from surveyor.experiments import propositions

    options = _parse("propositions", Options, argv)
    propositions.run(options.out, quick=options.quick)


def _table(argv: list[str]) -> None:
    from surveyor.experiments import tables

    tables.show(_parse("table", Options, argv).out)


def _gridsearch(argv: list[str]) -> None:
    from surveyor.experiments import tables

    options = _parse("gridsearch", GridSearch, argv)
    seeds = options.seeds if options.seeds is not None else 1 if options.quick else 3
    if seeds < 1:
        raise SurveyorError(f"seeds must be at least 1, not {seeds}.")
    tables.gridsearch(
        options.problem,
        options.out,
        quick=options.quick,
        seeds=seeds,
        algorithm=options.algorithm,
        source=options.source,
    )


def _parse(command, kind, argv):
    return parse(kind, argv, f"surveyor paper {command}")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "fig2": _fig2,
    "fig3": _fig3,
    "propositions": _propositions,
    "table": _table,
    "gridsearch": _gridsearch,
}
