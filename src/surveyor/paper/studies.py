"""Many runs for one result: each is trained once, in its own folder, and found again later."""

import dataclasses
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from surveyor import envs
from surveyor.agents.base import Agent
from surveyor.errors import SurveyorError
from surveyor.launch import pool as parallel
from surveyor.launch.progress import Overview
from surveyor.runs import api
from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.sweeps.statistics import median_solved


@dataclasses.dataclass(frozen=True)
class Cell:
    """One point of a figure: an algorithm on an environment, with several seeds."""

    algorithm: str
    env: str
    agent: Agent
    seeds: int
    episodes: int | None = None

    def configs(self) -> list[Config]:
        """The runs that it is made of."""
        return [
            api.configure(self.agent, self.env, seed=seed, episodes=self.episodes)
            for seed in range(self.seeds)
        ]

    @property
    def size(self) -> int:
        """L."""
        return envs.named(self.env).size


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the runs of a cell came to."""

    algorithm: str
    env: str
    size: int
    budget: int
    runs: list[Record]

    @property
    def solved(self) -> int:
        """How many of the runs were solved."""
        return sum(run["solved_at"] is not None for run in self.runs)

    @property
    def median(self) -> float | None:
        """Median of `solved_at`; None if it falls among unsolved runs."""
        return median_solved(run["solved_at"] for run in self.runs)

    def mean(self, name: str) -> float:
        """The mean of a number that every run has, such as `gradient_steps`."""
        return statistics.fmean(run[name] for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **dataclasses.asdict(self),
            "solved": self.solved,
            "median_solved_at": self.median,
        }


class StoppedError(Exception):
    """The user stopped a study; all of it is on disk."""


def carry_out(cells: Iterable[Cell], out: Path) -> list[Outcome]:
    """Train whatever is not finished yet, on all cores, and return the outcome of every cell.

    Runs of one cell share a compiled program. The largest problems go first, so that no core is
    left alone with one of them at the end. Raises `StoppedError` if Ctrl-C came.
    """
    cells = list(cells)
    configs = [config for cell in cells for config in cell.configs()]
    numbers = {config: number for number, config in enumerate(configs)}
    results = {number: api.outcome(config, out) for number, config in enumerate(configs)}
    waiting = [number for number, result in results.items() if result is None]
    if waiting:
        _train([configs[number] for number in waiting], waiting, results, out)
    outcomes = []
    for cell in cells:
        runs = [results[numbers[config]] for config in cell.configs()]
        budget = cell.configs()[0].budget
        outcomes.append(
            Outcome(cell.algorithm, cell.env, cell.size, budget, [run for run in runs if run])
        )
    return outcomes


def _train(
    configs: list[Config], numbers: list[int], results: dict[int, Record | None], out: Path
) -> None:
    order = sorted(range(len(configs)), key=lambda place: -_cost(configs[place]))
    ordered = [configs[place] for place in order]
    with Overview(ordered, len(results) - len(configs)) as overview:
        new = parallel.train_all(ordered, out, overview, alone=False)
    for place, result in zip(order, new, strict=True):
        if result is None or not result.pop("finished"):
            reason = (result or {}).get("failure")
            raise StoppedError if reason is None else SurveyorError(reason)
        results[numbers[place]] = result


def _cost(config: Config) -> float:
    """A guess of which run takes longest: steps of training and of acting."""
    env = envs.named(config.env)
    return config.budget * (config.agent.schedule.updates + env.horizon / 10)
