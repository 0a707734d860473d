"""Many runs for one result: each is trained once, in its own folder, and found again later."""

import dataclasses
import statistics
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import drawing, envs
from surveyor.agents.base import Agent
from surveyor.errors import StoppedError, SurveyorError, unknown
from surveyor.launch import pool
from surveyor.launch.progress import Overview
from surveyor.paper.options import FigureOptions
from surveyor.runs import api
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.sweeps.statistics import median_solved
from surveyor.sweeps.text import table


@dataclasses.dataclass(frozen=True)
class Cell:
    """One point of a figure: an algorithm on an environment, with several seeds."""

    algorithm: str
    """Name in tables and figures."""
    env: str
    agent: Agent
    seeds: int
    """Number of seeds, counted from 0."""
    episodes: int | None = None
    """Budget of a run in episodes; the environment's default if None."""

    def configs(self) -> list[Config]:
        """Return the configurations of its runs."""
        return [
            api.configure(self.agent, self.env, seed=seed, episodes=self.episodes)
            for seed in range(self.seeds)
        ]

    @property
    def size(self) -> int:
        """L, the size of the problem."""
        return envs.named(self.env).size


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Results of the runs of a cell."""

    algorithm: str
    env: str
    size: int
    budget: int
    """Budget of a run in episodes."""
    runs: list[Record]
    """Result of every run, by seed."""

    @property
    def solved(self) -> int:
        """Number of solved runs."""
        return sum(at is not None for at in self.solved_at)

    @property
    def median(self) -> float | None:
        """Median of `solved_at`; None if it falls among unsolved runs."""
        return median_solved(self.solved_at)

    @property
    def cells(self) -> list[str]:
        """Table cells that all figures share, one for each of `HEADER`."""
        solved_at = ", ".join("–" if at is None else str(at) for at in self.solved_at)
        median = "–" if self.median is None else f"{self.median:g}"
        share = f"{self.solved} of {len(self.runs)}"
        return [self.algorithm, str(self.size), share, solved_at, median]

    @property
    def costs(self) -> list[str]:
        """Table cells of the mean gradient steps and seconds of a run, solved or not."""
        return [f"{self.mean('gradient_steps'):,.0f}", f"{self.mean('seconds'):.1f}"]

    @property
    def solved_at(self) -> list[int | None]:
        """Episode from which each run's greedy policy is optimal; None if unsolved."""
        return [run["solved_at"] for run in self.runs]

    def mean(self, name: str) -> float:
        """Return the mean of a number that every run has, such as `gradient_steps`."""
        return statistics.fmean(run[name] for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dataclasses.asdict(self) | {"solved": self.solved, "median_solved_at": self.median}


HEADER = ["algorithm", "L", "solved", "solved at (by seed)", "median episodes"]
COSTS = ["gradient steps", "seconds"]
Columns = dict[str, Callable[[Outcome], str]]


def select(cells: list[Cell], algorithms: Collection[str]) -> list[Cell]:
    """Return the cells of these algorithms, or all if none is named; raise for unknown names."""
    known = list(dict.fromkeys(cell.algorithm for cell in cells))
    for name in algorithms:
        if name not in known:
            raise unknown("algorithm of this figure", name, known)
    return [cell for cell in cells if not algorithms or cell.algorithm in algorithms]


def reproduce(cells: list[Cell], options: FigureOptions) -> list[Outcome]:
    """Train the cells of a figure that the options choose."""
    drawing.require_matplotlib()
    return train_cells(select(cells, options.algorithms), options.out / "runs")


def of(outcomes: Iterable[Outcome], algorithm: str) -> list[Outcome]:
    """Return the outcomes of one algorithm, by size."""
    mine = [outcome for outcome in outcomes if outcome.algorithm == algorithm]
    return sorted(mine, key=lambda outcome: outcome.size)


def table_of(outcomes: list[Outcome], algorithms: Iterable[str], more: Columns) -> list[str]:
    """Return the table of these algorithms, in this order, with more columns before the costs."""
    rows = [
        [*outcome.cells, *(cell(outcome) for cell in more.values()), *outcome.costs]
        for name in algorithms
        for outcome in of(outcomes, name)
    ]
    return table([*HEADER, *more, *COSTS], rows)


def medians(outcomes: Iterable[Outcome], algorithm: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes and median episodes of one algorithm, where there is a median."""
    found = [(o.size, o.median) for o in of(outcomes, algorithm) if o.median is not None]
    points = np.array(found, float).reshape(-1, 2)
    return points[:, 0], points[:, 1]


def train_cells(cells: Collection[Cell], out: Path) -> list[Outcome]:
    """Train the runs that have not ended, on all cores; return the outcome of every cell.

    Runs of one cell share a compiled program. The most expensive runs start first, so that no core
    idles while another trains one of them at the end. Raise `StoppedError` after Ctrl-C.
    """
    configs = [config for cell in cells for config in cell.configs()]
    results = {config: RunFolder(out / config.name).outcome() for config in configs}
    waiting = [config for config, result in results.items() if result is None]
    if waiting:
        waiting.sort(key=_cost, reverse=True)
        results |= zip(waiting, _train(waiting, len(results), out), strict=True)
    outcomes = []
    for cell in cells:
        found = [result for config in cell.configs() if (result := results[config])]
        budget = cell.configs()[0].budget
        outcomes.append(Outcome(cell.algorithm, cell.env, cell.size, budget, found))
    return outcomes


def _train(configs: list[Config], total: int, out: Path) -> list[Record | None]:
    with Overview(configs, total - len(configs)) as overview:
        results = pool.train_all(configs, out, overview)
    for result in results:
        if result is None or not result.pop("finished"):
            reason = (result or {}).get("failure")
            raise StoppedError if reason is None else SurveyorError(reason)
    return results


def _cost(config: Config) -> float:
    """Return a rough cost of a run, in gradient steps and steps of acting."""
    return config.budget * (config.agent.schedule.updates + envs.named(config.env).horizon / 10)
