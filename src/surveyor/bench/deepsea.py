"""DeepSea from pictures: episodes to learn it, by size."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import agents, drawing
from surveyor.bench import study
from surveyor.bench.options import DeepSeaOptions
from surveyor.bench.study import Trial, Watch
from surveyor.envs.sea import DeepSea
from surveyor.runs import api
from surveyor.runs.folder import Record
from surveyor.sweeps.statistics import median_solved
from surveyor.sweeps.text import table, write

FIELD: dict[str, Any] = {
    "hidden": 64,
    "batch_size": 128,
    "target_every": 4,
    "learning_rate": 1e-3,
    "discount": 0.99,
    "replay_capacity": 100_000,
    "n_step": 1,
} | {"train_every": 1, "gradient_steps": 1, "envs": 1, "warmup": 128}
"""Network, updates and rates of Li et al. (2024)."""
LABELS = {
    "su-plus": "SU+",
    "hyperagent": "HyperAgent",
    "hyperagent-optimistic": "HyperAgent, optimistic",
    "bootdqn": "BootDQN+prior",
    "bonus": "Bonus DQN",
    "dqn": "DQN",
}
OWN: dict[str, dict[str, Any]] = {
    "su-plus": {"learning_rate": 2e-3, "warmup": 0, "replay": "prioritised(0.6)"},
    "hyperagent-optimistic": {"target": "optimistic"},
    "dqn": {"epsilon_steps": 10_000},
}
"""What agents have of their own; SU+'s three are rates, the last is how often a step is drawn."""
DITHERING = ("bonus", "dqn")
"""Agents without a belief, whose test episodes are greedy."""
SIZES, LARGE, QUICK = (10, 20, 30, 40, 50), (60, 80, 100), (6, 8)
BUDGET, EVERY, TESTS = 10_000, 20, 100
"""Episodes of a run, between tests, and with samples of the belief in each test."""
SHORT = 0.005
"""How far below the optimal return of 0.99 a mean return counts as it, as rounded in the field."""
PUBLISHED = {
    "hyperagent": {20: 415, 30: 953, 40: 1385, 50: 1850, 60: 2193, 80: 3356, 100: 4287},
    "hyperagent-optimistic": {20: 330, 30: 513, 40: 770, 50: 1128, 60: 1260, 80: 2045, 100: 2889},
}
"""Median episodes by the field's criterion, read off the figures of Li et al. (2024)."""


def trials(options: DeepSeaOptions) -> list[Trial]:
    """Return the runs that the options ask for."""
    chosen = study.labelled(options.agents, LABELS)
    sizes = options.sizes or (QUICK if options.quick else SIZES + LARGE * options.full)
    budget = options.episodes or (600 if options.quick else BUDGET)
    found = []
    for size, name in itertools.product(sizes, chosen):
        agent = agent_of(name)
        seeds = options.seeds or (2 if options.quick else 3 if size in LARGE else 10)
        sampled = 0 if name in DITHERING else TESTS
        watch = Watch(EVERY * size, 1, sampled, DeepSea(size).optimal_return - SHORT)
        for seed in range(seeds):
            config = api.configure(agent, f"DeepSea-{size}", steps=budget * size, seed=seed)
            found.append(Trial(chosen[name], config, watch))
    return found


def agent_of(name: str) -> Any:
    """Return an agent with the field's network and updates on DeepSea."""
    agent: Any = agents.preset(name.removesuffix("-optimistic"), "classic")
    return dataclasses.replace(agent, **FIELD | OWN.get(name, {}))


def run(options: DeepSeaOptions) -> None:
    """Train, and write deepsea.jsonl, deepsea.json, deepsea.md and deepsea.png."""
    drawing.require_matplotlib()
    entries = study.train(trials(options), options.out, "deepsea")
    show(entries, options.out)


@dataclasses.dataclass(frozen=True)
class Point:
    """The runs of one agent on one size."""

    label: str
    size: int
    field: list[int | None]
    """Episodes by the field's criterion, of each seed; None if never."""
    greedy: list[int | None]
    """Episodes by ours."""
    seconds: float
    budget: int

    @property
    def published(self) -> int | None:
        """Median that the agent's authors report."""
        name = next(name for name, label in LABELS.items() if label == self.label)
        return PUBLISHED.get(name, {}).get(self.size)


def collect(entries: list[Record]) -> list[Point]:
    """Return the points of all agents, by agent and size."""
    groups: dict[tuple[str, int], list[Record]] = {}
    for entry in entries:
        size = int(entry["env"].removeprefix("DeepSea-"))
        groups.setdefault((entry["label"], size), []).append(entry)
    order = list(LABELS.values())
    points = []
    for (label, size), runs in sorted(groups.items(), key=lambda g: (order.index(g[0][0]), g[0])):
        field = [
            _episodes(run, size, "sampled" if run["sampled"] else "evaluations") for run in runs
        ]
        greedy = [_episodes(run, size, "evaluations", study.IN_A_ROW) for run in runs]
        seconds = float(np.mean([run["seconds"] for run in runs]))
        points.append(Point(label, size, field, greedy, seconds, runs[0]["budget"] // size))
    return points


def _episodes(entry: Record, size: int, kind: str, in_a_row: int = 1) -> int | None:
    """Return the episodes until evaluations of this kind were optimal, None if never."""
    until = DeepSea(size).optimal_return - SHORT
    steps = study.reached(study.of_entry(entry, kind), until, in_a_row=in_a_row)
    return None if steps is None else round(steps / size)


def show(entries: list[Record], out: Path) -> None:
    """Write the benchmark's files."""
    points = collect(entries)
    rows = []
    for p in points:
        cells = [_median(p.field), _spread(p.field), _median(p.greedy), f"{p.seconds:.0f}"]
        rows.append([p.size, p.label, *cells, p.published or ""])
    rows.sort(key=lambda row: row[0])
    header = ["N", "agent", "field's criterion", "range", "greedy", "seconds a run", "published"]
    lines = [
        "# DeepSea from pictures",
        "",
        "Median episodes until 100 test episodes, each with a sample of the belief, have a mean "
        "return of 0.99 (the field's criterion), and until the greedy policy is optimal in three "
        "tests in a row; tests are 20 episodes apart. In brackets: seeds that got there. "
        "Published: read off the figures of Li et al. (2024), field's criterion.",
        "",
        *table(header, rows),
    ]
    for label, fit in slopes(points).items():
        lines += ["", f"{label}: episodes grow as N^{fit:.2f}."]
    data = [dataclasses.asdict(point) for point in points]
    write(out, "deepsea", data, lines, draw(points, out / "deepsea.png"))


def _median(times: list[int | None]) -> str:
    solved = sum(time is not None for time in times)
    median = median_solved(times)
    return f"{'–' if median is None else f'{median:g}'} ({solved} of {len(times)})"


def _spread(times: list[int | None]) -> str:
    known = [time for time in times if time is not None]
    return f"{min(known)}–{max(known)}" if known else "–"


def slopes(points: list[Point]) -> dict[str, float]:
    """Return the exponent of each agent that has a median at three sizes or more."""
    found = {}
    for label in dict.fromkeys(point.label for point in points):
        medians = [
            (p.size, m) for p in points if p.label == label and (m := median_solved(p.field))
        ]
        if len(medians) >= 3:
            sizes, episodes = np.log(medians).T
            found[label] = float(np.polyfit(sizes, episodes, 1)[0])
    return found


def draw(points: list[Point], path: Path) -> Path:
    """Draw episodes against size, in log-log, beside the published medians."""
    figure = drawing.new_figure(8.5, 4.8)
    axes = figure.subplots()
    for label, colour in zip(LABELS.values(), drawing.COLOURS, strict=False):
        mine = [point for point in points if point.label == label]
        for point in mine:
            times = [time for time in point.field if time is not None]
            axes.scatter([point.size] * len(times), times, s=9, alpha=0.4, lw=0, color=colour)
        medians = [(p.size, m) for p in mine if (m := median_solved(p.field)) is not None]
        if medians:
            axes.plot(*np.array(medians).T, "o-", ms=4, lw=1.3, color=colour, label=label)
        never = [(p.size, p.budget) for p in mine if median_solved(p.field) is None]
        if never:
            mark = f"{label}: fewer than half, at the budget"
            axes.plot(*np.array(never).T, "x", color=colour, label=mark)
    sizes = sorted({point.size for point in points})
    for name, marker in (("hyperagent", "s"), ("hyperagent-optimistic", "^")):
        known = {n: t for n, t in PUBLISHED[name].items() if n <= max(sizes)}
        if known:
            where = list(known), list(known.values())
            said = f"{LABELS[name]}, published"
            axes.plot(*where, marker, ls=":", ms=5, mfc="none", color=drawing.GREY, label=said)
    low, high = min(sizes), max(max(sizes), min(sizes) + 1)
    ticks = [n for n in (5, 10, 20, 30, 40, 50, 60, 80, 100) if low <= n <= high] or sizes
    axes.set(xscale="log", yscale="log", xlabel="size N", ylabel="episodes to learn")
    axes.set_xlim(low / math.sqrt(1.2), high * math.sqrt(1.2))
    axes.set_xticks(ticks, [f"{n}" for n in ticks])
    axes.xaxis.minorticks_off()
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    drawing.open_frame(axes)
    return drawing.save(figure, path)
