"""Figure 2: median episodes to learn the binary tree, for every algorithm, and their cost."""

from pathlib import Path

import numpy as np
from scipy import stats

from surveyor import BDQN, PSRL, SU, UBE, BootDQN, SUPlus, drawing
from surveyor.agents.base import Agent
from surveyor.agents.uniform import median_episodes
from surveyor.drawing import BLUE, GREY, ORANGE, RED
from surveyor.paper.options import FigureOptions
from surveyor.paper.studies import Cell, Outcome, of, reproduce, table_of
from surveyor.sweeps.text import table, write

AUTHORS = {
    10: "10–20",
    50: "60–200",
    100: "150–220",
    150: "390–410",
    200: "520–540",
    250: "760–800",
}
"""Episodes to solve with the authors' released code of SU, three seeds."""

LARGE: dict[str, Agent] = {
    "Bootstrap+Prior 1x": BootDQN.preset("tree", "paper_1x"),
    "Bootstrap+Prior 25x": BootDQN.preset("tree", "tree_25x"),
    "SU (released)": SU.preset("tree", "released"),
    "SU+": SUPlus.preset("tree"),
    "PSRL": PSRL.preset("tree"),
}
"""Algorithms trained at all sizes."""
PRINTED: dict[str, Agent] = {
    "SU (text)": SU.preset("tree", "text"),
    "Bootstrap+Prior 25x, printed": BootDQN.preset("tree", "paper_25x"),
}
"""Settings as table 2 prints them, trained at a few sizes."""
SMALL: dict[str, Agent] = {"BDQN": BDQN(), "UBE": UBE()}
"""Algorithms no better than uniform exploration: small trees, with seeds enough to show it."""
PANELS = (
    "BDQN", "UBE", "Bootstrap+Prior 1x", "Bootstrap+Prior 25x", "SU (released)", "SU (text)", "SU+",
    "PSRL",
)  # fmt: skip
"""Panels from left to right; SU+ and PSRL are not in the paper's figure."""
NOTE = """\
SU (released) and SU (text) are the paper's algorithm with the settings of its released code and of
its text; SU+ is this library's. Bootstrap+Prior 25x has a prior weight of 10, which is in the
paper's search set; the row "printed" has the 0 of table 2."""


def cells(*, quick: bool) -> list[Cell]:
    """Return every point of the figure; if `quick`, of few sizes, seeds and episodes."""
    large, printed, small = list(range(10, 251, 10)), [10, *range(50, 251, 50)], list(range(4, 14))
    seeds, many, budget = 5, 40, 5000
    if quick:
        large, printed, small = [10, 40, 100], [10, 40], [6, 8]
        seeds, many, budget = 3, 10, 1000
    groups = ((LARGE, large, seeds), (PRINTED, printed, seeds), (SMALL, small, many))
    return [
        Cell(name, f"Tree-{size}", agent, count, budget)
        for agents, sizes, count in groups
        for name, agent in agents.items()
        for size in sizes
    ]


def run(options: FigureOptions) -> None:
    """Train, and write fig2.json, fig2.md and fig2.png."""
    show(reproduce(cells(quick=options.quick), options), options.out)


def show(outcomes: list[Outcome], out: Path) -> None:
    """Write the figure's files; algorithms without an outcome are left out."""
    lines = ["# Figure 2: the binary tree", "", *_episodes(outcomes), *_rates(outcomes)]
    picture = draw(outcomes, out / "fig2.png")
    write(out, "fig2", [outcome.to_json() for outcome in outcomes], lines, picture)


def _episodes(outcomes: list[Outcome]) -> list[str]:
    more = {
        "authors' code": lambda o: (
            AUTHORS.get(o.size, "") if o.algorithm == "SU (released)" else ""
        ),
        "uniform": lambda o: f"{median_episodes(o.size):.3g}",
    }
    budget = max(outcome.budget for outcome in outcomes)
    return [
        f"Median episode from which the greedy policy is optimal, budget {budget} episodes. "
        "Gradient steps and seconds of training are means over the runs, solved or not.",
        *("", *NOTE.splitlines(), ""),
        *table_of(outcomes, dict.fromkeys([*PANELS, *PRINTED]), more),
    ]


def _rates(outcomes: list[Outcome]) -> list[str]:
    """Return first successes of BDQN and UBE beside those of uniform exploration, as a table."""
    rows = []
    for name in SMALL:
        mine = of(outcomes, name)
        for label, group in [*((f"{o.size}", [o]) for o in mine), ("all", mine)] if mine else []:
            rate, low, high, found = success_rate(group)
            verdict = "better" if low > 1 else "no better"
            rows.append([name, label, found, f"{rate:.2f}", f"{low:.2f} – {high:.2f}", verdict])
    about = "Chance of a first success in an episode, as a multiple of uniform exploration's 2^-L."
    header = ["algorithm", "L", "first successes", "times 2^-L", "95% interval", "verdict"]
    return ["", about, "", *table(header, rows)] if rows else []


def success_rate(outcomes: list[Outcome]) -> tuple[float, float, float, int]:
    """Return the rate of first successes in all runs as a multiple of uniform exploration's.

    The results are the ratio, its exact 95% Poisson interval, and the number of first successes.
    """
    found, expected = 0, 0.0
    for outcome in outcomes:
        for run in outcome.runs:
            found += run["first_success"] is not None
            expected += (run["first_success"] or run["episodes"]) * 2.0**-outcome.size
    low = stats.gamma.ppf(0.025, found) if found else 0.0
    high = stats.gamma.ppf(0.975, found + 1)
    return found / expected, float(low) / expected, float(high) / expected, found


def draw(outcomes: list[Outcome], path: Path) -> Path:
    """Draw median episodes and, below, seconds of training: a column for each algorithm."""
    panels = {name: mine for name in PANELS if (mine := of(outcomes, name))}
    figure = drawing.new_figure(1.9 * len(panels) + 0.8, 5.4)
    grid = figure.subplots(2, len(panels), sharey="row", sharex="col", squeeze=False)
    budget = max(outcome.budget for outcome in outcomes)
    for (above, below), (name, mine) in zip(grid.T, panels.items(), strict=True):
        _draw_medians(above, mine, budget)
        above.set_title(name, fontsize=9)
        sizes = [o.size for o in mine]
        below.plot(sizes, [o.mean("seconds") for o in mine], "o-", color=GREY, ms=4, lw=1)
        below.set(yscale="log", xlabel="tree size L")
    grid[0, 0].set_ylabel("median episodes to learn")
    grid[1, 0].set_ylabel("seconds of training per run")
    marks = {"all seeds solved": BLUE, "some": ORANGE, "none, at the budget": RED}
    for label, colour in marks.items():
        grid[0, 0].scatter([], [], color=colour, s=22, label=label)
    grid[0, 0].plot([], [], color=GREY, ls="--", lw=1, label="uniform exploration")
    figure.legend(loc="outside upper center", ncols=4, fontsize=9, frameon=False)
    for axes in grid.flat:
        drawing.open_frame(axes)
    return drawing.save(figure, path)


def _draw_medians(axes: drawing.Axes, outcomes: list[Outcome], budget: int) -> None:
    """Draw medians in the colours of the paper's caption; an unsolved median is at the budget."""
    sizes = [o.size for o in outcomes]
    heights = [budget if o.median is None else o.median for o in outcomes]
    solved = [BLUE if o.solved == len(o.runs) else ORANGE if o.solved else RED for o in outcomes]
    axes.scatter(sizes, heights, color=solved, s=22, zorder=3)
    line = np.linspace(1, max(sizes) + 1, 300)
    axes.plot(line, np.log(2) * 2.0 ** np.minimum(line, 60), color=GREY, ls="--", lw=1)
    axes.set(ylim=(5, 1.6 * budget), yscale="log")
