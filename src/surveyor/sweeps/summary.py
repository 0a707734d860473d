"""Results of the runs in a folder: learning curves, scores, and statistics over tasks."""

import dataclasses
import itertools
from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Float

from surveyor.agents.options import values
from surveyor.envs import families
from surveyor.errors import SurveyorError
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.storage import Storage
from surveyor.sweeps import statistics
from surveyor.sweeps.status import RunStatus, number
from surveyor.sweeps.text import table


@dataclasses.dataclass(frozen=True)
class Curve:
    """Learning curve of one run."""

    times: Float[np.ndarray, " n"]
    """Episodes or steps so far."""
    returns: Float[np.ndarray, " n"]
    """Mean return at each time."""
    budget: int
    """Episodes or steps of the whole run."""
    ended: bool = True

    @property
    def score(self) -> float:
        """Mean return in the last tenth of the budget; the last return if there is none."""
        late = self.returns[self.times > 0.9 * self.budget]
        return float(np.mean(late if len(late) else self.returns[-1:]))


Curves = dict[tuple[str, str], list[Curve]]
"""Curves of all seeds, by label and environment."""
Scores = dict[str, dict[str, list[float]]]
"""Scores of all seeds, by label and environment."""


def curves(where: Storage, statuses: list[RunStatus]) -> Curves:
    """Return the learning curves of all runs; raise `SurveyorError` if there are none yet."""
    with where.mirrored() as folder:
        known = {each.name: points(RunFolder(folder / each.name).metrics()) for each in statuses}
    if not (found := grouped(distinguish(statuses)[0], known)):
        raise SurveyorError("None of the runs has a return to show yet.")
    return found


def distinguish(statuses: list[RunStatus]) -> tuple[list[RunStatus], list[str]]:
    """Return the runs with labels that differ where settings differ, and those settings as text.

    The settings of a run are those in which runs of its agent on its environment differ. They are
    added to a label that different runs share.
    """
    kinds: dict[Any, list[int]] = {}
    for i, each in enumerate(statuses):
        kinds.setdefault(each.config and (type(each.config.agent), each.config.env), []).append(i)
    settings, texts = [_settings(each.config) for each in statuses], [""] * len(statuses)
    for runs in kinds.values():
        first = settings[runs[0]]
        differing = [name for name in first if any(settings[i][name] != first[name] for i in runs)]
        for i in runs:
            texts[i] = ", ".join(f"{name} = {settings[i][name]}" for name in differing)
    places = [(each.label, each.config and each.config.env) for each in statuses]
    meanings = Counter(place for place, _ in {*zip(places, texts, strict=True)})
    labelled = list(statuses)
    for i, each in enumerate(statuses):
        if texts[i] and meanings[places[i]] > 1:
            labelled[i] = dataclasses.replace(each, label=f"{each.label}, {texts[i]}")
    return labelled, texts


def _settings(config: Config | None) -> dict[str, Any]:
    if config is None:
        return {}
    names = ("budget", "protocol", "stop_when_solved")
    return {**values(config.agent), **{name: getattr(config, name) for name in names}}


def grouped(statuses: list[RunStatus], points: dict[str, list[tuple[float, float]]]) -> Curves:
    """Return curves by label and environment, from the points of each run by its name."""
    found: Curves = {}
    for each in statuses:
        config, known = each.config, np.array(points[each.name], float).reshape(-1, 2)
        if config is not None and len(known):
            curve = Curve(known[:, 0], known[:, 1], config.budget, each.state == "done")
            found.setdefault((each.label, config.env), []).append(curve)
    return found


def points(records: list[Record]) -> list[tuple[float, float]]:
    """Return time and mean return of every record that has both."""
    found = []
    for record in records:
        when, earned = number(record.get("step")), number(record.get("return"))
        if isinstance(record.get("returns"), list):
            known = [value for value in map(number, record["returns"]) if value is not None]
            when, earned = number(record.get("episode")), float(np.mean(known)) if known else None
        if when is not None and earned is not None:
            found.append((when, earned))
    return found


@dataclasses.dataclass(frozen=True)
class Summary:
    """Scores of each label on each environment, and over all of them."""

    envs: list[str]
    """Environments on which any label has a score."""
    scores: Scores
    common: list[str]
    """Environments on which every label has a score."""
    normalised: dict[str, np.ndarray]
    """Normalised scores on the common environments by label, as environments × seeds; seeds that
    only some environments have are left out."""
    scale: str
    """Meaning of 0 and 1 in the normalised scores."""

    def iqm(self, label: str) -> tuple[float, statistics.Interval]:
        """Return the interquartile mean of the normalised scores and its 95% interval."""
        scores = self.normalised[label]
        return statistics.iqm(scores), statistics.interval(scores, statistics.iqm)


def summarise(found: Curves) -> Summary:
    """Return the scores of all runs that have ended; raise `SurveyorError` if none has.

    Normalise by the families' reference scores if all environments have them on one scale; else
    from the uniform agent to DQN if both were trained, else from the worst run to the best.
    """
    envs = list(dict.fromkeys(env for _, env in found))
    scores: Scores = {}
    for label, env in itertools.product(dict.fromkeys(label for label, _ in found), envs):
        if ended := [curve.score for curve in found.get((label, env), ()) if curve.ended]:
            scores.setdefault(label, {})[env] = ended
    if not scores:
        raise SurveyorError("None of the runs has ended, so there is nothing to score.")
    envs = [env for env in envs if any(env in by_env for by_env in scores.values())]
    references, scale = _references(scores, envs)
    common = [env for env in envs if all(env in by_env for by_env in scores.values())]
    normalised = {}
    for label, by_env in scores.items() if common else ():
        seeds = min(len(by_env[env]) for env in common)
        rows = [np.array(by_env[env][:seeds]) for env in common]
        zeros, ones = np.array([references[env] for env in common]).T[..., None]
        normalised[label] = (np.stack(rows) - zeros) / (ones - zeros)
    return Summary(envs, scores, common, normalised, scale)


def best(summary: Summary, count: int) -> list[str]:
    """Return the `count` labels with the best mean rank over environments, in the given order."""
    places: dict[str, list[float]] = {label: [] for label in summary.scores}
    for env in summary.envs:
        known = {label: by[env] for label, by in summary.scores.items() if env in by}
        order = sorted(known, key=lambda label: -np.mean(known[label]))
        for place, label in enumerate(order):
            places[label].append(place / len(order))
    chosen = sorted(places, key=lambda label: np.mean(places[label]))[:count]
    return [label for label in places if label in chosen]


def _references(scores: Scores, envs: list[str]) -> tuple[dict[str, tuple[float, float]], str]:
    """Return the scores that count as 0 and 1 on each environment, and what they are."""
    kinds = {env: families.find(env) for env in envs}
    known = {env: pair for env, kind in kinds.items() if (pair := kind.reference(env)) is not None}
    scales = {kind.scale for kind in kinds.values()}
    if len(known) == len(envs) and len(scales) == 1:
        return known, scales.pop()
    uniform, dqn = scores.get("Uniform", {}), scores.get("DQN", {})
    if all(env in uniform and env in dqn for env in envs):
        found = {env: _apart([np.mean(uniform[env]), np.mean(dqn[env])]) for env in envs}
        return found, "0 is the uniform policy and 1 the mean of DQN"
    values = {env: [x for by_env in scores.values() for x in by_env.get(env, [])] for env in envs}
    found = {env: _apart([min(values[env]), max(values[env])]) for env in envs}
    return found, "0 is the worst run and 1 the best, for each environment by itself"


def _apart(scores: list[Any]) -> tuple[float, float]:
    """Return two scores that differ: where all runs are equal, all score 1."""
    low, high = map(float, scores)
    return (low, high) if abs(high - low) > 1e-12 else (low - 1.0, low)


def lines(summary: Summary) -> list[str]:
    """Return the scores as a Markdown table, with 95% intervals over seeds."""
    rows = []
    for label, by_env in summary.scores.items():
        cells = [_cell(by_env.get(env, [])) for env in summary.envs]
        total = ""
        if label in summary.normalised:
            value, (low, high) = summary.iqm(label)
            seeds = summary.normalised[label].shape[1]
            total = f"{value:.2f}" + (f" ({low:.2f} to {high:.2f})" if seeds > 1 else "")
        rows.append([label, *cells, total])
    over = ", ".join(summary.common) or "none, since no environment was used for all of them"
    over = "" if summary.common == summary.envs else f" Interquartile means over: {over}."
    return [
        "Mean return over the last tenth of each run that has ended; in brackets 95% intervals by "
        f"the bootstrap over seeds. Normalised: {summary.scale}.{over}",
        "",
        *table(["", *summary.envs, "interquartile mean, normalised"], rows),
    ]


def _cell(scores: list[float]) -> str:
    if len(scores) < 2:
        return "".join(f"{score:.4g}" for score in scores)
    low, high = statistics.interval(np.array([scores]), np.mean)
    return f"{np.mean(scores):.4g} ({low:.4g} to {high:.4g})"
