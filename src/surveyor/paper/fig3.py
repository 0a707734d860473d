"""Figure 3: how learning time grows with the chain, to L = 160 as in the paper and beyond it."""

from pathlib import Path
from typing import Any

import numpy as np

from surveyor import plots
from surveyor import PSRL, SU, BootDQN, SUPlus
from surveyor.paper.fig2 import medians
from surveyor.paper.studies import Cell, Outcome, carry_out
from surveyor.sweeps.text import table, write

PAPER_SLOPE, PAPER_INTERCEPT = 2.5, -0.95
"""The paper's line for SU: log10 T = 2.5 log10 L - 0.95."""
BOOTSTRAP_SLOPE = 3.0
"""Of Bootstrap+Prior, as the paper quotes it from Osband et al. (2018)."""
PAPER_SIZES = list(range(20, 161, 20))
BEYOND = [200, 240]
"""Sizes that the paper could not run for want of memory."""


def paper_line(size: Any) -> Any:
    """Episodes that the paper's line predicts for SU."""
    return 10**PAPER_INTERCEPT * size**PAPER_SLOPE


def cells(*, quick: bool, beyond: bool) -> list[Cell]:
    """Every point of the figure."""
    released, text, plus, psrl = PAPER_SIZES, [10, 20], PAPER_SIZES, [20, 40, 60, 80]
    bootstrap, seeds = [10, 15, 20, 25], 5
    if quick:
        released, text, plus, psrl, bootstrap, seeds = [10, 20], [10], [10, 20, 40], [10, 20], [10], 3
    elif beyond:
        plus = plus + BEYOND
    chosen = [
        ("SU (released)", SU.preset("chain", "released"), released),
        ("SU (text)", SU.preset("chain", "text"), text),
        ("SU+", SUPlus.preset("chain"), plus),
        ("PSRL", PSRL.preset("chain"), psrl),
        ("Bootstrap+Prior", BootDQN.preset("chain"), bootstrap),
    ]
    return [
        Cell(name, f"Chain-{size}", agent, seeds) for name, agent, sizes in chosen for size in sizes
    ]


def run(out: Path, *, quick: bool, beyond: bool = True) -> None:
    """Train, and write fig3.json, fig3.md and fig3.png."""
    plots.require_matplotlib()
    outcomes = carry_out(cells(quick=quick, beyond=beyond), out / "runs")
    slopes = {name: slope(outcomes, name) for name in ("SU", "PSRL", "Bootstrap+Prior")}
    write(out, "fig3", _data(outcomes, slopes), _text(outcomes, slopes))
    plots.figure3(outcomes, slopes, out / "fig3.png")


def slope(outcomes: list[Outcome], name: str) -> tuple[float, float] | None:
    """Slope and intercept of log10 T against log10 L, fitted to the medians up to L = 160."""
    sizes, times = medians(outcomes, name)
    inside = sizes <= PAPER_SIZES[-1]
    if inside.sum() < 2:
        return None
    fitted = np.polyfit(np.log10(sizes[inside]), np.log10(times[inside]), 1)
    return float(fitted[0]), float(fitted[1])


def _data(outcomes, slopes):
    return {"slopes": slopes, "cells": [outcome.to_json() for outcome in outcomes]}


def _text(outcomes: list[Outcome], slopes) -> list[str]:
    rows = [
        [
            o.algorithm,
            o.size,
            f"{o.solved} of {len(o.runs)}",
            ", ".join(str(run["solved_at"]) for run in o.runs),
            "–" if o.median is None else f"{o.median:g}",
            f"{paper_line(o.size):.0f}" if o.algorithm == "SU" else "",
            f"{o.mean('gradient_steps'):,.0f}",
            f"{o.mean('seconds'):.1f}",
        ]
        for o in outcomes
    ]
    header = ["algorithm", "L", "solved", "solved at", "median", "paper's line", "gradient steps"]
    lines = ["# Figure 3: the chain", "", *table([*header, "seconds"], rows), ""]
    for name, fit in slopes.items():
        if fit is not None:
            lines.append(f"{name}: log10 T = {fit[0]:.2f} log10 L {fit[1]:+.2f} (L ≤ 160).  ")
    lines.append(f"Paper, SU: log10 T = {PAPER_SLOPE} log10 L {PAPER_INTERCEPT:+}.  ")
    lines.append(f"Paper, Bootstrap+Prior (from Osband et al. 2018): slope {BOOTSTRAP_SLOPE}.")
    return lines
