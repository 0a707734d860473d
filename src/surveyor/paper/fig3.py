"""Figure 3: growth of learning time with the chain, to L = 160 as in the paper, and beyond it."""

from pathlib import Path
from typing import Any

import numpy as np

from surveyor import PSRL, SU, BootDQN, SUPlus, drawing
from surveyor.paper.options import Fig3Options
from surveyor.paper.studies import Cell, Outcome, medians, of, reproduce, table_of
from surveyor.sweeps.text import write

PAPER_SLOPE, PAPER_INTERCEPT = 2.5, -0.95
"""The paper's line for SU: log10 T = 2.5 log10 L - 0.95."""
BOOTSTRAP_SLOPE = 3.0
"""Slope of Bootstrap+Prior, as the paper quotes it from Osband et al. (2018)."""
PAPER_SIZES = list(range(20, 161, 20))
LINES = {
    "SU (released)": drawing.BLUE,
    "SU (text)": drawing.PURPLE,
    "SU+": drawing.RED,
    "PSRL": drawing.GREEN,
    "Bootstrap+Prior": drawing.ORANGE,
}
"""Algorithms and their colours; SU+ and PSRL are not in the paper's figure."""
Fit = tuple[float, float] | None
"""Slope and intercept of log10 T = slope · log10 L + intercept, None where none was fitted."""


def paper_line(size: Any) -> Any:
    """Return the episodes that the paper's line predicts for SU at one or many sizes."""
    return 10**PAPER_INTERCEPT * size**PAPER_SLOPE


def cells(*, quick: bool, beyond: bool) -> list[Cell]:
    """Return every point: few if `quick`; if `beyond`, SU+ also at sizes beyond the paper's."""
    beyond_paper = [200, 240] if beyond else []  # the paper had too little memory for them
    released, plus = PAPER_SIZES, PAPER_SIZES + beyond_paper
    text, psrl, bootstrap = [10, 20], [20, 40, 60, 80], [10, 15, 20, 25]
    if quick:
        released, text, plus, psrl, bootstrap = [10, 20], [10], [10, 20, 40], [10, 20], [10]
    chosen = [
        ("SU (released)", SU.preset("chain", "released"), released),
        ("SU (text)", SU.preset("chain", "text"), text),
        ("SU+", SUPlus.preset("chain"), plus),
        ("PSRL", PSRL.preset("chain"), psrl),
        ("Bootstrap+Prior", BootDQN.preset("chain"), bootstrap),
    ]
    return [
        Cell(name, f"Chain-{size}", agent, 3 if quick else 5)
        for name, agent, sizes in chosen
        for size in sizes
    ]


def run(options: Fig3Options) -> None:
    """Train, and write fig3.json, fig3.md and fig3.png."""
    chosen = cells(quick=options.quick, beyond=not options.paper_sizes_only)
    show(reproduce(chosen, options), options.out)


def show(outcomes: list[Outcome], out: Path) -> None:
    """Write the figure's files; algorithms without an outcome are left out."""
    fits = {name: slope(outcomes, name) for name in LINES}
    data = {"slopes": fits, "cells": [outcome.to_json() for outcome in outcomes]}
    write(out, "fig3", data, _text(outcomes, fits), draw(outcomes, fits, out / "fig3.png"))


def slope(outcomes: list[Outcome], algorithm: str) -> Fit:
    """Fit one algorithm's medians up to L = 160; return None if there are fewer than three."""
    sizes, times = medians(outcomes, algorithm)
    inside = sizes <= PAPER_SIZES[-1]
    if inside.sum() < 3:
        return None
    exponent, intercept = np.polyfit(np.log10(sizes[inside]), np.log10(times[inside]), 1)
    return float(exponent), float(intercept)


def _text(outcomes: list[Outcome], fits: dict[str, Fit]) -> list[str]:
    def published(o: Outcome) -> str:
        return f"{paper_line(o.size):.0f}" if o.algorithm.startswith("SU") else ""

    rows = table_of(outcomes, LINES, {"paper's line": published})
    lines = ["# Figure 3: the chain", "", *rows, ""]
    for name, fit in fits.items():
        if fit is not None:
            lines.append(f"{name}: log10 T = {fit[0]:.2f} log10 L {fit[1]:+.2f} (L ≤ 160).  ")
    lines.append(f"Paper, SU: log10 T = {PAPER_SLOPE} log10 L {PAPER_INTERCEPT:+}.  ")
    lines.append(f"Paper, Bootstrap+Prior (from Osband et al. 2018): slope {BOOTSTRAP_SLOPE}.")
    return lines


def draw(outcomes: list[Outcome], fits: dict[str, Fit], path: Path) -> Path:
    """Draw learning time against the chain's size, in log-log, with fitted and published lines."""
    figure = drawing.new_figure(9.5, 5.0)
    axes = figure.subplots()
    sizes = np.array(sorted({o.size for o in outcomes}), float)
    for name, fit in fits.items():
        _draw_algorithm(axes, name, of(outcomes, name), fit)
    label = f"paper, SU: slope {PAPER_SLOPE}"
    axes.plot(sizes, paper_line(sizes), color=drawing.GREY, ls="--", label=label)
    x, y = medians(outcomes, "Bootstrap+Prior")
    if len(x):
        label = f"paper, Bootstrap+Prior: slope {BOOTSTRAP_SLOPE}"
        cubic = y[0] * (sizes / x[0]) ** BOOTSTRAP_SLOPE
        axes.plot(sizes, cubic, color=LINES["Bootstrap+Prior"], ls=":", label=label)
    axes.set(xscale="log", yscale="log", xlabel="chain size L", ylabel="learning time T (episodes)")
    ticks = [size for size in sizes if size in (10, 20, 40, 80, 160, 240)]
    axes.set_xticks(ticks, [f"{size:g}" for size in ticks])
    axes.minorticks_off()
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    drawing.open_frame(axes)
    return drawing.save(figure, path)


def _draw_algorithm(axes: drawing.Axes, name: str, outcomes: list[Outcome], fit: Fit) -> None:
    """Draw seeds small, medians large, and the fitted line; a cross where there is no median."""
    colour = LINES[name]
    for o in outcomes:
        times = [at for at in o.solved_at if at is not None]
        axes.scatter([o.size] * len(times), times, color=colour, s=8, alpha=0.4, linewidths=0)
    unsolved = [(o.size, o.budget) for o in outcomes if o.median is None]
    x, y = medians(outcomes, name)
    label = name if fit is None else f"{name}: slope {fit[0]:.2f}"
    if len(x):
        axes.plot(x, y, "o", color=colour, label=label)
    if unsolved:
        where, unsolved_label = zip(*unsolved, strict=True), f"{name}: unsolved, at the budget"
        axes.plot(*where, "x", color=colour, label=unsolved_label)
    if fit is not None:
        axes.plot(x, 10 ** fit[1] * x ** fit[0], color=colour, lw=1)
