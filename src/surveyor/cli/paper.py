"""`surveyor paper …`: the figures, tables and propositions of the paper, by command."""

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional

from surveyor.cli.options import parse
from surveyor.errors import SurveyorError, unknown
from surveyor.launch.engine import Engine

USAGE = """\
surveyor paper: reproduce the paper, one result at a time

  surveyor paper fig2              episodes to learn the tree, for every algorithm
  surveyor paper fig3              how learning time grows with the chain
  surveyor paper propositions      what the theory predicts, and what is measured
  surveyor paper table             the hyperparameters of tables 2 and 3
  surveyor paper gridsearch tree   the paper's own hyperparameter search (or: chain)
  surveyor paper table1            the Atari table, from published scores or from your own runs
  surveyor paper fig4              SU beside the others on each game, from the same
  surveyor paper atari             train and test on Atari by the paper's protocol, for both

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtariTable:
    """Table 1 or figure 4: percentiles, superhuman games, SU's lead game by game."""

    runs: str | None = None
    """From the tested Atari runs in this folder (or URL), which `surveyor paper atari` makes. By
    default from the scores that the paper publishes."""
    score: Literal["best", "last", "mean"] = "best"
    """Of each run: its best test (as in the paper, and optimistic), its last, or the mean."""
    human: Literal["paper", "30min"] = "paper"
    """Human and random scores of 5-minute episodes, as in the paper, or of 30-minute episodes."""
    out: Path = Path("paper")
    """Where the results go."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Atari(Engine):
    """Train on Atari, test by the paper's protocol during training, and fill table 1 and figure 4.
    The whole of it, 49 games with 3 seeds and 200 million frames, is for a cluster."""

    quick: Flag = False
    """Two games, two seeds and thousands of frames, with as short a random start: shows in minutes
    that all of it works, and nothing about the agents."""
    games: list[str] = dataclasses.field(default_factory=lambda: ["all"])
    """Which games, such as pong freeway; all is the paper's 49."""
    agents: list[str] = dataclasses.field(default_factory=lambda: ["su"])
    """Which agents: su, and dqn, bootdqn, ube or bdqn beside it."""
    seeds: int = 3
    """Seeds for each game."""
    frames: int = 200_000_000
    """Frames of training for each run; an action is held for four."""
    tests: int = 50
    """How often a run is tested during training, the last time at its end."""
    episodes: int = 100
    """Greedy episodes in a test, from no-op starts, of 30 minutes at the most."""
    human: Literal["paper", "30min"] = "paper"
    """Human and random scores of 5-minute episodes, as in the paper, or of 30-minute episodes."""
    out: Path = Path("paper")
    """Where the tables go."""
    runs: str | None = None
    """Where the runs go: a folder (with ray, one that all nodes share), or with ray any fsspec
    URL. By default the folder runs beside the tables."""


def paper(argv: list[str]) -> int:
    """Run `surveyor paper …`."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if argv else 2
    if argv[0] not in COMMANDS:
        raise unknown("result of the paper", argv[0], COMMANDS)
    began = time.monotonic()
    from surveyor.paper.studies import StoppedError

    try:
        COMMANDS[argv[0]](argv[1:])
    except StoppedError:
        print("Stopped; everything is saved. Give the same command to go on.", file=sys.stderr)
        return 130
    print(f"{time.monotonic() - began:.0f} s.", file=sys.stderr)
    return 0


def _fig2(argv: list[str]) -> None:
    from surveyor.paper import fig2

    options = _parse("fig2", Options, argv)
    fig2.run(options.out, quick=options.quick)


def _fig3(argv: list[str]) -> None:
    from surveyor.paper import fig3

    options = _parse("fig3", Figure3, argv)
    fig3.run(options.out, quick=options.quick, beyond=not options.paper_sizes_only)


def _propositions(argv: list[str]) -> None:
    from surveyor.paper import propositions

    options = _parse("propositions", Options, argv)
    propositions.run(options.out, quick=options.quick)


def _table(argv: list[str]) -> None:
    from surveyor.paper import tables

    tables.show(_parse("table", Options, argv).out)


def _gridsearch(argv: list[str]) -> None:
    from surveyor.paper import tables

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


def _table1(argv: list[str]) -> None:
    from surveyor.paper import atari, atari_table

    options = _parse("table1", AtariTable, argv)
    own, score = atari.collect(options.runs, options.score) if options.runs else (None, "best")
    atari_table.show_table1(options.out, options.human, own, score)


def _fig4(argv: list[str]) -> None:
    from surveyor.paper import atari, atari_table

    options = _parse("fig4", AtariTable, argv)
    own, score = atari.collect(options.runs, options.score) if options.runs else (None, "best")
    atari_table.show_fig4(options.out, options.human, own, score)


def _atari(argv: list[str]) -> None:
    from surveyor.envs.atari import scores
    from surveyor.paper import atari
    from surveyor.runs.periodic_evaluation import EvaluationPlan

    # Twice: --quick decides the defaults of the second reading.
    quick = _parse("atari", Atari, argv).quick
    small = dataclasses.replace(Atari(), **atari.QUICK) if quick else None
    options = _parse("atari", Atari, argv, small)
    settings = atari.QUICK_AGENT if quick else {}
    for name in ("seeds", "frames", "tests", "episodes"):
        if getattr(options, name) < 1:
            raise SurveyorError(f"{name} must be at least 1, not {getattr(options, name)}.")
    games = list(scores()) if "all" in options.games else options.games
    if not games:
        raise SurveyorError("--games needs at least one game, such as pong, or all.")
    tests = EvaluationPlan(options.tests, options.episodes)
    experiment = atari.Experiment(
        games, options.agents, options.seeds, options.frames, tests, settings
    )
    runs = str(options.out / "runs") if options.runs is None else options.runs
    atari.run(experiment, options.out, runs, options, options.human)


def _parse(command, kind, argv, default=None):
    return parse(kind, argv, f"surveyor paper {command}", default)


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "fig2": _fig2,
    "fig3": _fig3,
    "propositions": _propositions,
    "table": _table,
    "gridsearch": _gridsearch,
    "table1": _table1,
    "fig4": _fig4,
    "atari": _atari,
}
