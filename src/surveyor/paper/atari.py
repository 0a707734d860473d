"""The paper's Atari experiment: train, test by its protocol, fill table 1 and figure 4."""

import dataclasses
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surveyor import agents
from surveyor.envs import atari
from surveyor.errors import SurveyorError, unknown
from surveyor.launch.engine import Engine
from surveyor.launch.work import RunOptions
from surveyor.paper.atari_table import PUBLISHED, Column, show_fig4, show_table1
from surveyor.paper.studies import StoppedError
from surveyor.runs import storage
from surveyor.runs.config import Config
from surveyor.runs.folder import RunFolder
from surveyor.runs.periodic_evaluation import EvaluationPlan
from surveyor.sweeps import spec, status, summary
from surveyor.sweeps.spec import Planned
from surveyor.sweeps.status import number
from surveyor.sweeps.text import table, write
from surveyor.sweeps.train import train

Score = Literal["best", "last", "mean"]
SCORES: tuple[Score, ...] = ("best", "last", "mean")
"""Of the tests during training: the best one, as in the paper (and optimistic, since it is chosen
by the score that is reported); the last one; the mean of all."""


QUICK: dict[str, Any] = {
    "games": ["pong", "freeway"],
    "seeds": 2,
    "frames": 24_000,
    "tests": 2,
    "episodes": 1,
}
QUICK_AGENT = {"warmup": 1_000, "replay_capacity": 10_000}
"""What `--quick` asks for."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Which runs, and how they are tested."""

    games: list[str]
    agents: list[str]
    seeds: int
    frames: int
    tests: EvaluationPlan
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Hyperparameters that are not those of the presets."""

    def planned(self) -> list[Planned]:
        """The runs."""
        games = [spelt(game) for game in self.games]
        for game, name in zip(self.games, games, strict=True):
            if name is None:
                raise unknown("game of the paper", game, sorted(atari.scores()))
        content = {
            "envs": [f"ALE/{name}" for name in dict.fromkeys(games)],
            "seeds": self.seeds,
            "frames": self.frames,
            "agents": [{"agent": agent, "set": self.settings} for agent in self.agents],
        }
        return spec.plan(content, "surveyor paper atari")


def run(experiment: Experiment, out: Path, runs: str, engine: Engine, human: atari.Table) -> None:
    """Train and test what has not been, then write atari, table1 and fig4."""
    results = train(experiment.planned(), runs, engine, RunOptions(evaluation=experiment.tests))
    if not all(result and result["finished"] for result in results):
        failures = [result["failure"] for result in results if result and "failure" in result]
        raise SurveyorError(failures[0]) if failures else StoppedError
    show(runs, out, human)


def show(runs: str, out: Path, human: atari.Table, score: Score = "best") -> None:
    """The tables from runs that have been tested, finished or not."""
    columns = {kind: collect(runs, kind)[0] for kind in SCORES}
    rows = []
    for name, column in columns[score].items():
        for game in sorted(column.scores):
            cells = []
            for kind in SCORES:
                values = columns[kind][name].scores[game]
                normal = [atari.human_normalised(game, value, human) or 0.0 for value in values]
                cells.append(f"{np.mean(values):.5g} ({np.mean(normal):.3f})")
            rows.append([game, column.label, len(column.scores[game]), *cells])
    header = ["game", "algorithm", "seeds", "best test", "last test", "mean of tests"]
    lines = ["# Atari: raw scores (human-normalised)", "", *table(header, rows)]
    data = {
        kind: {name: column.scores for name, column in columns[kind].items()} for kind in SCORES
    }
    write(out, "atari", data, lines)
    show_table1(out, human, columns[score], score)
    if "su" in columns[score]:
        show_fig4(out, human, columns[score], score)


def collect(runs: str, score: Score) -> tuple[dict[str, Column], Score | Literal["training"]]:
    """One column for each agent, from the tests of the runs in a folder; where none was tested, as
    after `surveyor sweep`, from the returns in the last tenth of training.

    Runs with other settings or budgets are columns of their own; the agent's plain name goes to
    those with the most frames. The second result says which it is.
    """
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    frames: dict[tuple[str, str], int] = {}
    unfinished = 0
    where = storage.at(runs)
    with where.mirrored() as folder:
        tested = [path.parent for path in sorted(folder.glob("ALE-*/tests.json"))]
        every = tested or [path.parent for path in sorted(folder.glob("ALE-*/metrics.jsonl"))]
        for path in every:
            standing = status.read(folder, path.name, None, where)
            if (config := standing.config) is None:
                print(f"{path.name} is left out: {standing.reason}", file=sys.stderr)
                continue
            known = _tests(path) if tested else _late(standing, path)
            game = spelt(atari.game(config.env))
            if known and game is not None:
                kind = agents.name_of(config.agent), _settings(config)
                frames[kind] = config.budget * atari.FRAMES
                found.setdefault(kind, {}).setdefault(game, []).append(pick(known, score))
                unfinished += standing.state != "done"
    if not found:
        raise SurveyorError(
            f"There are no Atari runs with a score in '{runs}'; `surveyor paper atari` makes some."
        )
    if unfinished:
        print(f"{unfinished} of these runs have not ended yet.", file=sys.stderr)
    columns: dict[str, Column] = {}
    for kind in sorted(found, key=lambda kind: -frames[kind]):
        name, settings = kind
        label = PUBLISHED.get(name, name)
        if name in columns:
            name, label = f"{name} {settings}", f"{label}, {frames[kind]:,} frames ({settings})"
        columns[name] = Column(label, found[kind])
    return columns, score if tested else "training"


def _tests(path: Path) -> list[float]:
    tests = [number(record.get("mean_return")) for record in RunFolder(path).evaluations()]
    return [value for value in tests if value is not None]


def _late(standing: status.RunStatus, path: Path) -> list[float]:
    """The mean return in the last tenth of training."""
    curves = summary.grouped([standing], {standing.name: summary.points_of(path)})
    return [curve.score for every in curves.values() for curve in every]


def _settings(config: Config) -> str:
    """A short name for all that decides a run beside its game and its seed."""
    return dataclasses.replace(config, env="", seed=0).digest()[:4]


def pick(tests: list[float], score: Score) -> float:
    """One number for a run."""
    return {"best": max(tests), "last": tests[-1], "mean": float(np.mean(tests))}[score]


def spelt(game: str) -> str | None:
    """A game's name as the table of scores has it."""
    plain = game.replace("_", "").lower()
    return next((name for name in atari.scores() if name.replace("_", "") == plain), None)
