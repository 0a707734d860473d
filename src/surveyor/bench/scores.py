"""Benchmarks of tasks with scores: their runs, table and picture."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import agents, drawing
from surveyor.bench import study
from surveyor.bench.options import TaskOptions
from surveyor.bench.study import Trial, Watch
from surveyor.drawing import COLOURS
from surveyor.envs import families
from surveyor.errors import unknown
from surveyor.runs import api
from surveyor.runs.folder import Record
from surveyor.sweeps import statistics
from surveyor.sweeps.text import table, write

LABELS = {
    "su-plus": "SU+",
    "hyperagent": "HyperAgent",
    "bootdqn": "BootDQN+prior",
    "bonus": "Bonus DQN",
    "dqn": "DQN",
}
EVALUATIONS, EPISODES = 20, 20
"""Evaluations of a run, evenly spaced, and greedy episodes in each."""
FLOOR = 0.8
"""Share of DQN's score below which an agent does harm."""


@dataclasses.dataclass(frozen=True)
class Task:
    """One environment of a benchmark."""

    name: str
    """Name in tables."""
    env: str
    steps: int
    """Budget of a run."""
    worst: float
    """Return that counts as 0, of an agent that has found nothing."""
    best: float
    """Return that counts as 1."""
    solved: float
    """Mean return from which the task is solved."""
    protocol: str | None = None


@dataclasses.dataclass(frozen=True)
class Result:
    """The runs of one agent on one task."""

    label: str
    task: str
    scores: list[float]
    """Mean of each seed's last three evaluations, from 0 for the worst to 1 for the best."""
    returns: list[float]
    """The same as returns."""
    solved_at: list[int | None]
    """Steps until the first of three evaluations in a row that reach the threshold."""
    seconds: float
    """Mean over seeds."""


def preset(name: str, task: Task) -> Any:
    """Return an agent as it is by default on a task."""
    return agents.preset(name, families.find(task.env).preset(task.env))


def trials(
    tasks: Sequence[Task],
    options: TaskOptions,
    labels: Mapping[str, str] = LABELS,
    agent_of: Callable[[str, Task], Any] = preset,
) -> list[Trial]:
    """Return the runs that the options ask for; raise `SurveyorError` for unknown names.

    `agent_of` makes an agent from its name in `labels`, or None where it has no part in a task.
    """
    for name in options.tasks:
        if name not in (known := [task.name for task in tasks]):
            raise unknown("task of this benchmark", name, known)
    chosen = [task for task in tasks if not options.tasks or task.name in options.tasks]
    chosen = chosen[:2] if options.quick and not options.tasks else chosen
    names = study.labelled(options.agents, labels)
    seeds = options.seeds or (2 if options.quick else 5)
    found = []
    for task, name, seed in itertools.product(chosen, names, range(seeds)):
        if (agent := agent_of(name, task)) is None:
            continue
        steps = min(task.steps, 5_000) if options.quick else task.steps
        how = {"steps": steps, "seed": seed, "protocol": task.protocol}
        config = api.configure(agent, task.env, **how)
        watch = Watch(-(-steps // EVALUATIONS), EPISODES)
        found.append(Trial(names[name], config, watch))
    return found


def run(
    name: str, title: str, tasks: Sequence[Task], options: TaskOptions, **entrants: Any
) -> None:
    """Train the agents of all, or those that `trials` takes, and write the benchmark's files."""
    drawing.require_matplotlib()
    entries = study.train(trials(tasks, options, **entrants), options.out, name)
    show(name, title, tasks, entries, options.out)


def collect(tasks: Sequence[Task], entries: list[Record]) -> list[Result]:
    """Return the results of all agents, by task and agent."""
    found = []
    for task, label in itertools.product(tasks, dict.fromkeys(run["label"] for run in entries)):
        runs = [run for run in entries if (run["env"], run["label"]) == (task.env, label)]
        if runs:
            last = [[mean for _, mean in run["evaluations"][-study.IN_A_ROW :]] for run in runs]
            returns = [float(np.mean(means)) for means in last]
            scores = [(value - task.worst) / (task.best - task.worst) for value in returns]
            times = [study.reached(study.of_entry(run), task.solved) for run in runs]
            seconds = float(np.mean([run["seconds"] for run in runs]))
            found.append(Result(label, task.name, scores, returns, times, seconds))
    return found


def show(name: str, title: str, tasks: Sequence[Task], entries: list[Record], out: Path) -> None:
    """Write NAME.json, NAME.md and NAME.png."""
    results = collect(tasks, entries)
    labels = list(dict.fromkeys(result.label for result in results))
    shown = [task for task in tasks if any(r.task == task.name for r in results)]
    by = {(result.task, result.label): result for result in results}
    rows = [[task.name, *(_cell(by.get((task.name, label))) for label in labels)] for task in shown]
    overall = {label: overall_score(results, label) for label in labels}
    rows.append(["interquartile mean", *(_overall(overall[label]) for label in labels)])
    lines = [
        f"# {title}",
        "",
        "Score: mean of the last three greedy evaluations, 20 episodes each, over seeds; in "
        "brackets the lowest seed, and how many seeds reached the threshold in three evaluations "
        "in a row. The last line has 95% intervals by the stratified bootstrap over seeds.",
        "",
        *table(["", *labels], rows),
        *harm(results),
    ]
    data = {"tasks": [dataclasses.asdict(t) for t in shown], "iqm": overall}
    data["results"] = [dataclasses.asdict(result) for result in results]
    write(out, name, data, lines, draw(shown, labels, by, overall, out / f"{name}.png"))


def overall_score(results: list[Result], label: str) -> tuple[float, float, float] | None:
    """Return the interquartile mean over tasks and seeds with its 95% interval.

    None where an agent lacks a task or has not the same seeds on all.
    """
    tasks = {result.task for result in results}
    mine = [result.scores for result in results if result.label == label]
    if len(mine) < len(tasks) or len({len(scores) for scores in mine}) > 1:
        return None
    scores = np.array(mine)
    low, high = statistics.interval(scores, statistics.iqm)
    return statistics.iqm(scores), low, high


def harm(results: list[Result]) -> list[str]:
    """Return a sentence on the tasks where SU+ is below its share of DQN's score."""
    means = {(r.task, r.label): float(np.mean(r.scores)) for r in results}
    both = [task for task, label in means if label == "SU+" and (task, "DQN") in means]
    floors = {task: (dqn := means[task, "DQN"]) - (1 - FLOOR) * abs(dqn) for task in both}
    worse = [task for task in both if means[task, "SU+"] < floors[task]]
    if not both:
        return []
    said = (
        f"below {FLOOR} of DQN's score on {', '.join(worse)}"
        if worse
        else f"nowhere below {FLOOR} of DQN's score"
    )
    return ["", f"SU+ is {said}."]


def _cell(result: Result | None) -> str:
    if result is None:
        return ""
    solved = sum(time is not None for time in result.solved_at)
    count = len(result.scores)
    return f"{np.mean(result.scores):.2f} ({min(result.scores):.2f}; {solved} of {count})"


def _overall(found: tuple[float, float, float] | None) -> str:
    return "" if found is None else f"{found[0]:.2f} ({found[1]:.2f} to {found[2]:.2f})"


def draw(
    tasks: Sequence[Task],
    labels: list[str],
    by: dict[tuple[str, str], Result],
    overall: dict[str, tuple[float, float, float] | None],
    path: Path,
) -> Path:
    """Draw every seed's score and the mean by task, and the interquartile means."""
    figure = drawing.new_figure(9.5, 1.4 + 0.16 * (len(labels) + 1.5) * len(tasks))
    left, right = figure.subplots(1, 2, width_ratios=[3, 1.3])
    step, height = len(labels) + 1.5, 0.8
    for (row, task), (number, label) in itertools.product(enumerate(tasks), enumerate(labels)):
        if result := by.get((task.name, label)):
            y, colour = row * step + number, COLOURS[number % len(COLOURS)]
            shown = label if row == 0 else None
            left.barh(y, np.mean(result.scores), height, color=colour, alpha=0.45, label=shown)
            ys = np.full(len(result.scores), y)
            left.scatter(result.scores, ys, s=10, color=colour, lw=0, zorder=3)
    middle = (len(labels) - 1) / 2
    left.set_yticks([row * step + middle for row in range(len(tasks))], [t.name for t in tasks])
    left.invert_yaxis()
    left.set_xlabel("score of each seed (dots) and their mean (bars)")
    for number, label in enumerate(labels):
        if found := overall[label]:
            mean, low, high = found
            colour = COLOURS[number % len(COLOURS)]
            right.barh(number, high - low, left=low, height=0.6, color=colour, alpha=0.4)
            right.plot([mean, mean], [number - 0.3, number + 0.3], color=colour, lw=2)
    right.set_yticks(range(len(labels)), labels)
    right.invert_yaxis()
    right.set_xlabel("interquartile mean, 95%")
    left_end, right_end = right.get_xlim()
    right.set_xlim(min(0.0, left_end), max(1.0, right_end))
    for axes in (left, right):
        drawing.open_frame(axes)
    figure.legend(loc="outside upper center", frameon=False, fontsize=9, ncols=min(5, len(labels)))
    return drawing.save(figure, path)
