"""The paper's Atari experiment: train, evaluate by its protocol, fill table 1 and figure 4."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from surveyor.envs import atari
from surveyor.errors import SurveyorError, unknown
from surveyor.launch.work import RunOptions
from surveyor.paper import fig4, table1
from surveyor.paper.atari_scores import SCORES, beside, collect, spelt
from surveyor.paper.options import AtariOptions
from surveyor.paper.studies import StoppedError
from surveyor.runs.evaluation import EvaluationPlan
from surveyor.sweeps import spec
from surveyor.sweeps.spec import Planned
from surveyor.sweeps.text import table, write
from surveyor.sweeps.train import train

FULL = {"games": ["all"], "seeds": 3, "frames": 200_000_000, "tests": 50, "episodes": 100}
"""The paper's experiment."""
QUICK = {"games": ["pong", "freeway"], "seeds": 2, "frames": 24_000, "tests": 2, "episodes": 1}
QUICK_AGENT = {"warmup": 1_000, "replay_capacity": 10_000}
"""Hyperparameters of `--quick`."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Runs to train, and how they are evaluated."""

    games: list[str]
    """Games in any usual spelling."""
    agents: list[str]
    """Names of the agents, which take their default presets."""
    seeds: int
    frames: int
    """Frames of training per run."""
    evaluation: EvaluationPlan
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Hyperparameters that differ from the presets."""

    def planned(self) -> list[Planned]:
        """Return the runs; raise `SurveyorError` for a game that the paper does not have."""
        for game in self.games:
            if spelt(game) is None:
                raise unknown("game of the paper", game, sorted(atari.scores()))
        content = {
            "envs": [f"ALE/{name}" for name in dict.fromkeys(map(spelt, self.games))],
            "seeds": self.seeds,
            "frames": self.frames,
            "agents": [{"agent": agent, "set": self.settings} for agent in self.agents],
        }
        return spec.plan(content, "surveyor paper atari")


def experiment(options: AtariOptions) -> Experiment:
    """Return the experiment of the options; those not given are the paper's, or `--quick`'s."""
    chosen: dict[str, Any] = dict(QUICK if options.quick else FULL)
    chosen |= {name: value for name in FULL if (value := getattr(options, name)) is not None}
    games = list(atari.scores()) if "all" in chosen["games"] else chosen["games"]
    evaluation = EvaluationPlan(chosen["tests"], chosen["episodes"])
    settings = QUICK_AGENT if options.quick else {}
    return Experiment(
        games, options.agents, chosen["seeds"], chosen["frames"], evaluation, settings
    )


def run(options: AtariOptions) -> None:
    """Train and evaluate the runs that have not been, then write atari, table1 and fig4."""
    chosen = experiment(options)
    runs = str(options.out / "runs") if options.runs is None else options.runs
    results = train(chosen.planned(), runs, options, RunOptions(evaluation=chosen.evaluation))
    if not all(result and result["finished"] for result in results):
        failures = [result["failure"] for result in results if result and "failure" in result]
        raise SurveyorError(failures[0]) if failures else StoppedError
    show(runs, options.out, options.human)


def show(runs: str, out: Path, human: atari.Table) -> None:
    """Write the tables of runs with evaluations, finished or not, in the folder or URL `runs`."""
    columns = {score: collect(runs, score)[0] for score in SCORES}
    rows = []
    for name, column in columns["best"].items():
        for game in sorted(column.scores):
            cells = []
            for score in SCORES:
                found = columns[score][name]
                (normalised,) = found.normalised([game], human)
                cells.append(f"{np.mean(found.scores[game]):.5g} ({normalised.mean():.3f})")
            rows.append([game, column.label, len(column.scores[game]), *cells])
    header = ["game", "algorithm", "seeds"]
    header += ["best evaluation", "last evaluation", "mean of evaluations"]
    lines = ["# Atari: raw scores (human-normalised)", "", *table(header, rows)]
    data = {kind: {name: c.scores for name, c in found.items()} for kind, found in columns.items()}
    write(out, "atari", data, lines)
    shown = beside(columns["best"])
    table1.show(out, human, shown, "best")
    if "su" in shown:
        fig4.show(out, human, shown, "best")
