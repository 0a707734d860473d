"""What the runs of a folder came to: learning curves, scores, and statistics over tasks."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from surveyor import envs as known_envs
from surveyor.envs.atari import reference
from surveyor.errors import SurveyorError
from surveyor.paper.studies import table
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.storage import Storage
from surveyor.sweeps import statistics
from surveyor.sweeps.statistics import Interval
from surveyor.sweeps.status import Standing, number
from surveyor.training import problems

LATE = 0.9
"""A score is the mean return after this share of the budget."""


@dataclasses.dataclass(frozen=True)
class Curve:
    """One run: when, and what it earned."""

    times: Float[np.ndarray, " n"]
    returns: Float[np.ndarray, " n"]
    budget: int
    ended: bool = True

    @property
    def score(self) -> float:
        """The mean return of the last tenth of the budget; of all of it where none is there."""
        late = self.returns[self.times > LATE * self.budget]
        return float(np.mean(late if len(late) else self.returns[-1:]))


Curves = dict[tuple[str, str], list[Curve]]
"""By label and environment, over seeds."""


def curves(where: Storage, standings: list[Standing]) -> Curves:
    """Those of every run that has something to show."""
    with where.mirrored() as folder:
        points = {each.name: points_of(folder / each.name) for each in standings}
    if not (found := grouped(told_apart(standings)[0], points)):
        raise SurveyorError("None of the runs has a return to show yet.")
    return found


def points_of(path: Path) -> list[tuple[float, float]]:
    """A run's curve: when, and what it earned."""
    points = [point(record) for record in RunFolder(path).metrics()]
    return [found for found in points if found is not None]


def told_apart(standings: list[Standing]) -> tuple[list[Standing], list[str]]:
    """What sets each run apart from the others of its agent on its environment; and the runs, where
    different ones have the same label with labels that say it too."""
    kinds: dict[Any, list[int]] = {}
    settings: list[dict[str, Any]] = []
    for i, config in enumerate(each.config for each in standings):
        settings.append({})
        if config is not None:
            kinds.setdefault((type(config.agent), config.env), []).append(i)
            settings[i] = {**dataclasses.asdict(config.agent), "budget": config.budget}
            settings[i] |= {
                "protocol": config.protocol, "stop_when_solved": config.stop_when_solved
            }  # fmt: skip
    said = [""] * len(standings)
    for every in kinds.values():
        first = settings[every[0]]
        apart = [name for name in first if any(settings[i][name] != first[name] for i in every)]
        for i in every:
            said[i] = ", ".join(f"{name} = {settings[i][name]}" for name in apart)
    meanings: dict[tuple[str, str | None], set[str]] = {}
    where = [(each.label, each.config.env if each.config else None) for each in standings]
    for place, what in zip(where, said, strict=True):
        meanings.setdefault(place, set()).add(what)
    told = [
        dataclasses.replace(each, label=f"{each.label}, {what}")
        if what and len(meanings[place]) > 1
        else each
        for each, what, place in zip(standings, said, where, strict=True)
    ]
    return told, said


def grouped(standings: list[Standing], points: dict[str, list[tuple[float, float]]]) -> Curves:
    """Curves by label and environment, from the points of each run."""
    found: Curves = {}
    for standing in standings:
        config, known = standing.config, np.array(points[standing.name], float).reshape(-1, 2)
        if config is not None and len(known):
            curve = Curve(known[:, 0], known[:, 1], config.budget, standing.state == "done")
            found.setdefault((standing.label, config.env), []).append(curve)
    return found


def point(record: Record) -> tuple[float, float] | None:
    """When, and the mean return; None where a record has none."""
    when, earned = number(record.get("step")), number(record.get("return"))
    if isinstance(record.get("returns"), list):
        known = [value for value in map(number, record["returns"]) if value is not None]
        when, earned = number(record.get("episode")), float(np.mean(known)) if known else None
    return None if when is None or earned is None else (when, earned)


@dataclasses.dataclass(frozen=True)
class Summary:
    """Scores of each label on each environment, and over all of them."""

    envs: list[str]
    scores: dict[str, dict[str, list[float]]]
    """By label and environment, over seeds."""
    common: list[str]
    """The environments on which every label has a score;"""
    normalised: dict[str, np.ndarray]
    """on those the normalised scores, environments × seeds; of a label that has more seeds on some
    of them, as many as on all."""
    scale: str
    """What 0 and 1 of the normalised scores are."""

    def iqm(self, label: str) -> tuple[float, Interval]:
        """The interquartile mean of the normalised scores, and its 95% interval."""
        scores = self.normalised[label]
        return statistics.iqm(scores), statistics.interval(scores, statistics.iqm)


def summarise(found: Curves) -> Summary:
    """Normalise by human scores on Atari and by the best return there is on trees and chains; else
    from the uniform agent to DQN where both are there, else from the worst run to the best."""
    envs = list(dict.fromkeys(env for _, env in found))
    labels = list(dict.fromkeys(label for label, _ in found))
    scores = {
        label: {
            env: ended
            for env in envs
            if (ended := [c.score for c in found.get((label, env), []) if c.ended])
        }
        for label in labels
    }
    envs = [env for env in envs if any(env in by_env for by_env in scores.values())]
    scores = {label: by_env for label, by_env in scores.items() if by_env}
    if not scores:
        raise SurveyorError("None of the runs has ended, so there is nothing to score.")
    ends, scale = _ends(scores, envs)
    common = [env for env in envs if all(env in by_env for by_env in scores.values())]
    normalised = {}
    for label, by_env in scores.items() if common else ():
        seeds = min(len(by_env[env]) for env in common)
        rows = [[(s - ends[env][0]) / ends[env][1] for s in by_env[env][:seeds]] for env in common]
        normalised[label] = np.array(rows)
    return Summary(envs, scores, common, normalised, scale)


def leading(summary: Summary, count: int) -> list[str]:
    """The labels with the best scores, by their mean place among those on the same environment."""
    places: dict[str, list[float]] = {label: [] for label in summary.scores}
    for env in summary.envs:
        known = {label: by[env] for label, by in summary.scores.items() if env in by}
        order = sorted(known, key=lambda label: -np.mean(known[label]))
        for place, label in enumerate(order):
            places[label].append(place / len(order))
    best = sorted(places, key=lambda label: np.mean(places[label]))[:count]
    return [label for label in places if label in best]


def _ends(
    scores: dict[str, dict[str, list[float]]], envs: list[str]
) -> tuple[dict[str, tuple[float, float]], str]:
    """For each environment what counts as 0, and how far from it 1 is."""
    known = {env: reference(problems.game(env)) for env in envs if problems.family(env) == "ALE"}
    human = {env: (pair[0], pair[1] - pair[0]) for env, pair in known.items() if pair is not None}
    if len(human) == len(envs):
        return human, "0 is the random policy and 1 a human, as in the paper"
    if all(problems.family(env) in known_envs.FAMILIES for env in envs):
        best = {env: (0.0, known_envs.named(env).optimal_return) for env in envs}
        return best, "1 is the best return that there is"
    pair = all(env in scores.get(label, {}) for env in envs for label in ("uniform", "dqn"))
    ends = {}
    for env in envs:
        values = np.concatenate([by_env[env] for by_env in scores.values() if env in by_env])
        low, high = float(values.min()), float(values.max())
        if pair:
            low = float(np.mean(scores["uniform"][env]))
            high = float(np.mean(scores["dqn"][env]))
        ends[env] = (low, high - low) if abs(high - low) > 1e-12 else (low - 1.0, 1.0)  # all are 1
    if pair:
        return ends, "0 is the uniform policy and 1 the mean of DQN"
    return ends, "0 is the worst run and 1 the best, for each environment by itself"


def lines(summary: Summary) -> list[str]:
    """As a Markdown table, with 95% intervals over seeds."""
    rows = []
    for label, by_env in summary.scores.items():
        row = [label]
        for env in summary.envs:
            row.append(_cell(np.array(by_env[env])) if env in by_env else "")
        if label in summary.normalised:
            value, (low, high) = summary.iqm(label)
            several = summary.normalised[label].shape[1] > 1
            row.append(f"{value:.2f}" + (f" ({low:.2f} to {high:.2f})" if several else ""))
        else:
            row.append("")
        rows.append(row)
    over = "" if len(summary.common) == len(summary.envs) else ", ".join(summary.common)
    if not summary.common:
        over = "none, for there is no environment that all of them have been trained on"
    return [
        "Mean return over the last tenth of each run that has ended; in brackets 95% by the "
        f"bootstrap over seeds. Normalised: {summary.scale}."
        + (f" Interquartile means over: {over}." if over else ""),
        "",
        *table(["", *summary.envs, "interquartile mean, normalised"], rows),
    ]


def _cell(scores: Float[np.ndarray, " n"]) -> str:
    if len(scores) == 1:
        return f"{scores[0]:.4g}"
    low, high = statistics.interval(scores[None], statistics.mean)
    return f"{scores.mean():.4g} ({low:.4g} to {high:.4g})"
