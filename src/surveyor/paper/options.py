"""Command-line options of the paper's results; the docstrings are what `--help` prints."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, Positional

from surveyor.envs.atari import Table
from surveyor.errors import SurveyorError
from surveyor.launch.engine import Engine

Flag = Annotated[bool, FlagCreatePairsOff]
Problem = Literal["tree", "chain"]
Source = Literal["released", "text"]
Score = Literal["best", "last", "mean"]


@dataclasses.dataclass(frozen=True)
class Options:
    """Reproduce one result of the paper."""

    quick: Flag = False
    """Use fewer sizes, seeds and episodes, to finish within five minutes."""
    out: Path = Path("paper")
    """Folder for the results; their runs are in its folder runs."""


@dataclasses.dataclass(frozen=True)
class FigureOptions(Options):
    """Reproduce a figure from training runs."""

    algorithms: tuple[str, ...] = ()
    """Algorithms to train and show, such as SU+ "SU (released)"; all if none is named."""


@dataclasses.dataclass(frozen=True)
class Fig3Options(FigureOptions):
    """Reproduce figure 3: learning time on the chain, L = 20 to 160, and beyond it 200 and 240."""

    paper_sizes_only: Flag = False
    """Stop at L = 160, the paper's largest chain."""


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """Show the hyperparameters of tables 2 and 3 beside this library's presets."""

    out: Path = Path("paper")
    """Folder for the table."""


@dataclasses.dataclass(frozen=True)
class GridSearchOptions(Options):
    """Repeat the paper's hyperparameter search, and show its winner."""

    problem: Positional[Problem] = "tree"
    """Problem to search on: tree (table 2, at L = 100) or chain (table 3, at L = 20)."""
    seeds: int | None = None
    """Seeds per point of the grid. By default 3, or 1 with --quick; the paper does not say."""
    algorithm: Literal["all", "SU", "B+P 1x", "B+P 25x"] = "all"
    """Column of the table to search."""
    source: Source = "released"
    """Settings of SU that are not searched: those of the paper's released code or of its text."""

    def __post_init__(self):
        _require_positive(self, "seeds")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtariTableOptions:
    """Show percentiles, superhuman games and SU's lead, from published scores or from own runs."""

    runs: str | None = None
    """Folder or URL of Atari runs to score, such as those of `surveyor paper atari`. By default
    the paper's published scores are shown."""
    score: Score | None = None
    """Score of a run: its best evaluation (by default, as in the paper, and optimistic), its last
    one, or the mean of all."""
    human: Table = "paper"
    """Human and random scores of 5-minute episodes, as in the paper, or of 30-minute episodes."""
    out: Path = Path("paper")
    """Folder for the results."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AtariOptions(Engine):
    """Train on Atari, evaluate by the paper's protocol, and fill table 1 and figure 4.

    The default, 49 games with 3 seeds and 200 million frames, is for a cluster.
    """

    quick: Flag = False
    """Take two games, two seeds, 24,000 frames and a short warm-up: checks the setup in minutes,
    and says nothing about the agents."""
    games: list[str] | None = None
    """Games, such as pong freeway. By default all 49 of the paper; pong freeway with --quick."""
    agents: list[str] = dataclasses.field(default_factory=lambda: ["su"])
    """Agents: su (the paper's released code), su-plus, dqn, bootdqn, ube or bdqn."""
    seeds: int | None = None
    """Seeds per game. By default 3; 2 with --quick."""
    frames: int | None = None
    """Frames of training per run, four of them a step. By default 200,000,000; 24,000 with
    --quick."""
    tests: int | None = None
    """Evaluations per run, the last one at its end. By default 50; 2 with --quick."""
    episodes: int | None = None
    """Greedy episodes per evaluation, from no-op starts, of 30 minutes at most. By default 100; 1
    with --quick."""
    human: Table = "paper"
    """Human and random scores of 5-minute episodes, as in the paper, or of 30-minute episodes."""
    out: Path = Path("paper")
    """Folder for the tables."""
    runs: str | None = None
    """Folder for the runs (with ray, one that all nodes share), or with ray any fsspec URL. By
    default the folder runs beside the tables."""

    def __post_init__(self):
        super().__post_init__()
        _require_positive(self, "seeds", "frames", "tests", "episodes")
        if self.games == []:
            raise SurveyorError("--games needs at least one game, such as pong, or all.")


def _require_positive(options: object, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            raise SurveyorError(f"{name} must be at least 1, not {value}.")
