"""bsuite's exploration experiments, with bsuite's settings and scores."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import agents, drawing
from surveyor.bench import deepsea, study
from surveyor.bench.options import BsuiteOptions
from surveyor.bench.study import Trial, Watch
from surveyor.envs import bsuite_ids
from surveyor.errors import unknown
from surveyor.runs import api
from surveyor.runs.folder import Record
from surveyor.sweeps.text import table, write

SEAS, SWING_UP = tuple(bsuite_ids.SEAS), bsuite_ids.SWING_UP
EXPERIMENTS = (*SEAS, SWING_UP)
BASE_REGRET, GOOD_EPISODE, FORGIVEN = 700, 100, 100
"""Of bsuite's analyses: the return to beat, that of a swing-up, and episodes beyond 2^N."""
PUBLISHED = {
    "Bootstrapped DQN, published": (1.0, 0.9, 0.15),
    "DQN, published": (0.0, 0.0, 0.0),
}
"""Scores of each experiment from a published table of bsuite."""
EVERY = 1_000
"""Steps between looks at the counts."""
QUICK_STEPS = 5_000


def trials(options: BsuiteOptions) -> list[Trial]:
    """Return the runs that the options ask for; raise `SurveyorError` for unknown names."""
    for name in options.tasks:
        if name not in EXPERIMENTS:
            raise unknown("task of this benchmark", name, EXPERIMENTS)
    chosen = study.labelled(options.agents, deepsea.LABELS)
    found = []
    for task, name in itertools.product(options.tasks or EXPERIMENTS, chosen):
        kind = name.removesuffix("-optimistic")
        swing = task == SWING_UP
        agent: Any = agents.preset(kind, "classic") if swing else deepsea.agent_of(name)
        if swing and name != kind:
            agent = dataclasses.replace(agent, **deepsea.OWN[name])
        envs = bsuite_ids.names(task)
        envs = envs[:2] if options.quick else envs
        for env, seed in itertools.product(envs, range(options.seeds or 1)):
            steps = QUICK_STEPS if options.quick else None
            config = api.configure(agent, env, steps=steps, seed=seed, protocol="compiled")
            found.append(Trial(chosen[name], config, Watch(EVERY, 0)))
    return found


def run(options: BsuiteOptions) -> None:
    """Train, and write bsuite.jsonl, bsuite.json, bsuite.md and bsuite.png."""
    drawing.require_matplotlib()
    entries = study.train(trials(options), options.out, "bsuite")
    show(entries, options.out)


def score(entry: Record) -> float:
    """Return bsuite's score of a run, from 0 to 1."""
    experiment, counts = entry["env"].split("/")[1], entry["counts"]
    if experiment == SWING_UP:
        regret = BASE_REGRET - counts["total"] / max(1, counts["episodes"])
        return 0.5 * (np.clip(1 - regret / BASE_REGRET, 0, 1) + (counts["best"] > GOOD_EPISODE))
    size = bsuite_ids.settings(entry["env"])["size"]
    return float(0 < counts["solved_at"] < 2**size + FORGIVEN)


def show(entries: list[Record], out: Path) -> None:
    """Write the benchmark's files."""
    each: dict[tuple[str, str], list[float]] = {}
    for entry in entries:
        key = (entry["label"], entry["env"].split("/")[1])
        each.setdefault(key, []).append(score(entry))
    shown = [task for task in EXPERIMENTS if any(task == found for _, found in each)]
    labels = list(dict.fromkeys(label for label, _ in each))
    means = {key: float(np.mean(values)) for key, values in each.items()}
    rows = [[label, *(_cell(each.get((label, task))) for task in shown)] for label in labels]
    for label, values in PUBLISHED.items():
        known = dict(zip(EXPERIMENTS, values, strict=True))
        rows.append([label, *(f"{known[task]:.2f}" for task in shown)])
        means |= {(label, task): known[task] for task in shown}
    lines = [
        "# bsuite's exploration",
        "",
        "Score of bsuite, the mean over its settings: a size of a sea counts 1 if bsuite takes it "
        "for solved within 2^N + 100 episodes; a swing-up is half the share of a regret of 700 an "
        "episode that was avoided, and half whether an episode earned more than 100. In brackets: "
        "settings that were run.",
        "",
        *table(["agent", *shown], rows),
    ]
    data = [
        {"label": entry["label"], "env": entry["env"], "score": score(entry), **entry["counts"]}
        for entry in entries
    ]
    write(out, "bsuite", data, lines, draw(means, shown, out / "bsuite.png"))


def _cell(values: list[float] | None) -> str:
    return "" if values is None else f"{np.mean(values):.2f} ({len(values)})"


def draw(means: dict[tuple[str, str], float], tasks: list[str], path: Path) -> Path:
    """Draw the scores as bars, by experiment."""
    labels = list(dict.fromkeys(label for label, _ in means))
    figure = drawing.new_figure(2.5 + 2.4 * len(tasks), 3.8)
    axes = figure.subplots()
    width = 0.85 / len(labels)
    for number, label in enumerate(labels):
        values = [means.get((label, task), 0.0) for task in tasks]
        places = np.arange(len(tasks)) + (number - (len(labels) - 1) / 2) * width
        known = label in PUBLISHED
        look: Any = (
            {"color": "none", "edgecolor": drawing.GREY, "hatch": "///" if number % 2 else "..."}
            if known
            else {"color": drawing.COLOURS[number]}
        )
        bars = axes.bar(places, values, 0.9 * width, label=label, **look)
        axes.bar_label(bars, fmt="%.2f", fontsize=7)
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_ylabel("bsuite's score")
    axes.set_ylim(0, 1.08)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    drawing.open_frame(axes)
    return drawing.save(figure, path)
