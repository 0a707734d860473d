"""The paper's Atari experiment: train, evaluate by its protocol, fill table 1 and figure 4."""

from pathlib import Path
from typing import Any

import numpy as np

from surveyor.envs import atari
from surveyor.errors import StoppedError, SurveyorError, unknown
from surveyor.launch.work import RunOptions
from surveyor.paper import fig4, table1
from surveyor.paper.atari_scores import SCORES, beside, collect, spelt
from surveyor.paper.options import AtariOptions
from surveyor.runs.evaluation import EvaluationPlan
from surveyor.sweeps import spec
from surveyor.sweeps.text import table, write
from surveyor.sweeps.train import train

FULL = {"games": ["all"], "seeds": 3, "frames": 200_000_000, "tests": 50, "episodes": 100}
"""The paper's experiment."""
QUICK = {"games": ["pong", "freeway"], "seeds": 2, "frames": 24_000, "tests": 2, "episodes": 1}
QUICK_AGENT = {"warmup": 1_000, "replay_capacity": 10_000}
"""Hyperparameters of `--quick`."""


def experiment(options: AtariOptions) -> tuple[dict[str, Any], EvaluationPlan]:
    """Return the specification of the runs, and how they are evaluated.

    Options not given are the paper's, or `--quick`'s. Raise `SurveyorError` for a game that the
    paper does not have.
    """
    chosen: dict[str, Any] = dict(QUICK if options.quick else FULL)
    chosen |= {name: value for name in FULL if (value := getattr(options, name)) is not None}
    games = list(atari.scores()) if "all" in chosen["games"] else chosen["games"]
    for game in games:
        if spelt(game) is None:
            raise unknown("game of the paper", game, sorted(atari.scores()))
    settings = QUICK_AGENT if options.quick else {}
    content = {
        "envs": [f"ALE/{name}" for name in dict.fromkeys(map(spelt, games))],
        "seeds": chosen["seeds"],
        "frames": chosen["frames"],
        "agents": [{"agent": agent, "set": settings} for agent in options.agents],
    }
    return content, EvaluationPlan(chosen["tests"], chosen["episodes"])


def run(options: AtariOptions) -> None:
    """Train and evaluate the runs that have not been, then write atari, table1 and fig4."""
    content, evaluation = experiment(options)
    planned = spec.plan(content, "surveyor paper atari")
    runs = str(options.out / "runs") if options.runs is None else options.runs
    results = train(planned, runs, options, RunOptions(evaluation=evaluation))
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
