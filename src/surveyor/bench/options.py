"""Command-line options of the benchmarks; the docstrings are what `--help` prints."""

import dataclasses
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff

from surveyor.errors import require

Flag = Annotated[bool, FlagCreatePairsOff]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Run a benchmark on all cores; the same command again continues where it stopped."""

    agents: tuple[str, ...] = ()
    """Agents to train and show, such as su-plus dqn; all of the benchmark if none is named."""
    seeds: int | None = None
    """Seeds of each agent on each task, counted from 0."""
    quick: Flag = False
    """Take few tasks, two seeds and small budgets, to see within minutes that everything works."""
    out: Path = Path("bench")
    """Folder for the results. A run with a line in its NAME.jsonl is not trained again."""

    def __post_init__(self):
        require(
            self.seeds is None or self.seeds >= 1, f"seeds must be at least 1, not {self.seeds}."
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepSeaOptions(Options):
    """Episodes to learn DeepSea-<N> from N × N pictures, by the field's protocol.

    By the field's criterion an agent has learnt when 100 test episodes, each with a sample of its
    belief, have a mean return of 0.99; by ours when its greedy policy is optimal in three tests in
    a row. Both are tested every 20 episodes. By default ten seeds and N = 10, 20, 30, 40 and 50.
    """

    full: Flag = False
    """Also N = 60, 80 and 100, with three seeds: a day of two cores for all agents."""
    sizes: tuple[int, ...] = ()
    """Sizes N to take in place of these."""
    episodes: int | None = None
    """Budget of a run in episodes. By default 10,000, as in the field; 600 with --quick."""

    def __post_init__(self):
        super().__post_init__()
        known = self.episodes is None or self.episodes >= 1
        require(known, f"episodes must be at least 1, not {self.episodes}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions(Options):
    """A benchmark of tasks with scores."""

    tasks: tuple[str, ...] = ()
    """Tasks to take; all if none is named."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BsuiteOptions(TaskOptions):
    """bsuite's exploration: deep_sea, deep_sea_stochastic and cartpole_swingup, with its scores.

    All 62 settings of these experiments, with one seed as in bsuite, in the compiled loop. A run
    on a sea ends when bsuite counts it as solved.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class MiniGridOptions(TaskOptions):
    """Ten of MiniGrid's worlds, fully observed, by MiniGrid's rules in the compiled loop.

    200,000 steps a run, 50,000 on the empty rooms; by default five seeds. A run's score is the mean
    of its last three greedy evaluations, of 20 episodes each.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassicsOptions(TaskOptions):
    """Small problems with sparse or random rewards, numbered states and vectors.

    By default five seeds. A run's score is the mean of its last three greedy evaluations, of 20
    episodes each; a task is solved from the first of three in a row that reach its threshold.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class AblationOptions(TaskOptions):
    """SU+ without one of its parts, on five tasks; --agents names variants.

    By default five seeds. Variants that differ on networks or on tables only have no part in the
    other tasks. Scores are those of `surveyor bench classics`.
    """
