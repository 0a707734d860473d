"""Scores on Atari: those that the paper publishes, and those of one's own runs."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator

from surveyor import agents
from surveyor.agents.base import Agent
from surveyor.agents.options import require
from surveyor.envs import atari
from surveyor.envs.atari import Table, human_normalised
from surveyor.errors import SurveyorError
from surveyor.paper.options import AtariTableOptions, Score
from surveyor.runs import storage
from surveyor.runs.config import Config
from surveyor.runs.folder import RunFolder
from surveyor.sweeps import status, summary
from surveyor.sweeps.statistics import RESAMPLES

SCORES: tuple[Score, ...] = get_args(Score)
"""Scores of a run: its best evaluation, as in the paper; its last one; the mean of all."""
Kind = Score | Literal["training", "published"]
Scores = dict[str, list[float]]
"""Raw scores of all seeds, by game."""
Games = list[np.ndarray]
"""Scores of all seeds, for each game."""
PUBLISHED = {
    "su": "Successor Uncertainties",
    "bootdqn": "Bootstrapped DQN",
    "ube": "UBE",
    "dqn": "DQN + ε-greedy",
}
"""Algorithms of the paper's table 5."""
CHOSEN: dict[Kind, str] = {
    "best": "The score of each of your runs is its best evaluation, as in the paper. This is "
    "optimistic, since the same evaluations choose and report.",
    "last": "The score of each of your runs is its last evaluation.",
    "mean": "The score of each of your runs is the mean of its evaluations.",
    "training": "None of your runs was evaluated by greedy episodes. The score of each is its mean "
    "return in the last tenth of training.",
}
"""Notes on the scores of runs."""


@dataclasses.dataclass(frozen=True)
class Column:
    """Scores of one algorithm."""

    label: str
    scores: Scores
    published: bool = False
    """True for scores from the paper's table 5."""

    def normalised(self, games: list[str], human: Table) -> Games:
        """Return the scores of all seeds of each game: 0 is the random policy, 1 a human."""
        return [
            np.array([human_normalised(game, score, human) or 0.0 for score in self.scores[game]])
            for game in games
        ]


Columns = dict[str, Column]


def published() -> Columns:
    """Return the columns of the paper's table 5."""
    return {
        name: Column(label, {game: [row[name]] for game, row in atari.scores().items()}, True)
        for name, label in PUBLISHED.items()
    }


def beside(own: Columns) -> Columns:
    """Return the columns of own runs, then the published ones on the same games."""
    games = {game for column in own.values() for game in column.scores}
    rest = {}
    for name, column in published().items():
        known = {game: values for game, values in column.scores.items() if game in games}
        rest[f"{name} published"] = Column(f"{column.label}, published", known, True)
    return own | rest


def read(options: AtariTableOptions) -> tuple[Columns, Kind]:
    """Return published columns, below those of the runs in the options if any, and their kind."""
    if options.runs is None:
        require(options.score is None, "--score is for your own runs: give them with --runs.")
        return published(), "published"
    own, kind = collect(options.runs, options.score or "best")
    return beside(own), kind


def collect(runs: str, score: Score) -> tuple[Columns, Kind]:
    """Return one column for each agent in a folder of runs, and the kind of score in it.

    Where no run has evaluations, as after `surveyor sweep`, the score is the mean return in the
    last tenth of training. Runs with other settings or budgets are columns of their own; the
    agent's name is the key of those with the most frames.
    """
    found: dict[tuple[str, str], tuple[Config, Scores]] = {}
    unfinished, where = 0, storage.at(runs)
    with where.mirrored() as folder:
        evaluated = [path.parent for path in sorted(folder.glob("ALE-*/tests.json"))]
        every = evaluated or [path.parent for path in sorted(folder.glob("ALE-*/metrics.jsonl"))]
        for path in every:
            run = status.read(folder, path.name, None, where)
            if (config := run.config) is None:
                print(f"{path.name} is left out: {run.reason}", file=sys.stderr)
                continue
            known = _evaluations(path) if evaluated else _late(run, path)
            game = spelt(atari.game(config.env))
            if known and game is not None:
                # a short hash of all that decides a run beside its game and its seed
                settings = dataclasses.replace(config, env="", seed=0).digest()[:4]
                kind = agents.name_of(config.agent), settings
                value = {"best": max(known), "last": known[-1], "mean": np.mean(known)}[score]
                by_game = found.setdefault(kind, (config, {}))[1]
                by_game.setdefault(game, []).append(float(value))
                unfinished += run.state != "done"
    if not found:
        raise SurveyorError(
            f"There are no Atari runs with a score in '{runs}'; `surveyor paper atari` makes some."
        )
    if unfinished:
        print(f"{unfinished} of these runs have not ended yet.", file=sys.stderr)
    return _columns(found), score if evaluated else "training"


def _columns(found: dict[tuple[str, str], tuple[Config, Scores]]) -> Columns:
    """Return columns, with frames and settings in the label where two would have the same."""
    columns: Columns = {}
    ordered = sorted(found.items(), key=lambda item: -item[1][0].budget)
    for (name, settings), (config, by_game) in ordered:
        label = describe(config.agent)
        if any(label == column.label for column in columns.values()):
            label += f", {config.budget * atari.FRAMES:,} frames ({settings})"
        columns[f"{name} {settings}" if name in columns else name] = Column(label, by_game)
    return columns


def describe(agent: Agent) -> str:
    """Return an agent's name in tables, with its nearest Atari preset where it has more than one.

    SU with the settings of the released code is "SU (released)"; other values of a preset are
    listed after its name.
    """
    entry = agents.entry_of(agent)
    presets = [name for name, preset in entry.presets.items() if "atari" in preset.values]
    if len(presets) < 2:
        return entry.title
    values, changes = dataclasses.asdict(agent), {}
    for name in presets:
        usual = dataclasses.asdict(type(agent).preset("atari", name))
        changes[name] = [f"{key} {values[key]}" for key in usual if values[key] != usual[key]]
    nearest = min(changes, key=lambda name: len(changes[name]))
    return f"{entry.title} ({', '.join([nearest, *changes[nearest]])})"


def _evaluations(path: Path) -> list[float]:
    found = [status.number(record.get("mean_return")) for record in RunFolder(path).evaluations()]
    return [value for value in found if value is not None]


def _late(run: status.RunStatus, path: Path) -> list[float]:
    """Return the mean return in the last tenth of training."""
    curves = summary.grouped([run], {run.name: summary.points(RunFolder(path).metrics())})
    return [curve.score for every in curves.values() for curve in every]


def spelt(game: str) -> str | None:
    """Return a game's name as the table of scores has it, or None if it is not there."""
    plain = game.replace("_", "").lower()
    return next((name for name in atari.scores() if name.replace("_", "") == plain), None)


def interval(rng: Generator, games: Games, statistic: Callable[[Games], Any]) -> np.ndarray | None:
    """Return both ends of a statistic's 95% interval, or None if every game has one seed.

    The bootstrap is stratified: it draws as many seeds again, with replacement, in every game.
    """
    if all(len(seeds) == 1 for seeds in games):
        return None
    draws = [
        statistic([seeds[rng.integers(0, len(seeds), len(seeds))] for seeds in games])
        for _ in range(RESAMPLES)
    ]
    return np.quantile(draws, (0.025, 0.975), axis=0)
