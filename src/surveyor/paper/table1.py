"""Table 1: percentiles of human-normalised scores over the 49 Atari games."""

from pathlib import Path

import numpy as np

from surveyor.envs.atari import Table
from surveyor.paper.atari_scores import CHOSEN, Columns, Games, Kind, interval, read
from surveyor.paper.options import AtariTableOptions
from surveyor.sweeps.text import table, write

PRINTED = {
    "su": (1.06, 2.09, 5.95, 77.55),
    "bootdqn": (0.76, 1.60, 5.16, 67.35),
    "ube": (0.38, 1.07, 4.14, 51.02),
    "dqn": (0.50, 1.00, 3.41, 48.98),
}
"""The table as printed: percentiles, and the percentage of superhuman games."""
EPISODES = {"paper": "5-minute episodes, as in the paper", "30min": "30-minute episodes"}
NOTES = {
    "paper": (
        "Differences from the printed table: SU's 75% is 5.935, not 5.95; DQN's 0.50 / 1.00 / "
        "3.41 results if one game with a low score, such as Alien, is left out; its 48.98% "
        "counts all 49."
    ),
    "30min": (
        "With the human and random scores of 30-minute episodes, which most later work uses, the "
        "medians have the same order, and SU's is 1.81 instead of 2.09: the comparison with "
        "humans depends on the table."
    ),
}
"""Notes on the published columns."""


def run(options: AtariTableOptions) -> None:
    """Write table1.json and table1.md from published scores or own runs."""
    show(options.out, options.human, *read(options))


def show(out: Path, human: Table, columns: Columns, kind: Kind) -> None:
    """Write table1.json and table1.md from columns with this kind of score."""
    about = "Percentiles over games of (score - random) / (human - random), for"
    lines = ["# Table 1: Atari 2600", "", f"{about} {EPISODES[human]}.", ""]
    lines += [*rows_of(columns, human), "", CHOSEN.get(kind, NOTES[human])]
    data = {}
    for key, column in columns.items():
        values = column.normalised(list(column.scores), human)
        data[key] = {"percentiles": percentiles(values).tolist(), "games": len(values)}
        if (ends := _interval(values)) is not None:
            data[key] |= {"low": ends[0].tolist(), "high": ends[1].tolist()}
    write(out, "table1", {"human": human, "score": kind, "columns": data}, lines)


def percentiles(games: Games) -> np.ndarray:
    """Return the quartiles over games of the seeds' means, and the percentage above a human."""
    means = np.array([seeds.mean() for seeds in games])
    return np.array([*np.percentile(means, (25, 50, 75)), 100 * np.mean(means > 1)])


def rows_of(columns: Columns, human: Table) -> list[str]:
    """Return the table's lines, with 95% intervals where a column has more than one seed."""
    rows = []
    for name, column in columns.items():
        values = column.normalised(list(column.scores), human)
        least, most = (f([len(seeds) for seeds in values]) for f in (min, max))
        seeds = "" if column.published else str(least) if least == most else f"{least} to {most}"
        printed = ""
        if column.published and len(values) == 49 and human == "paper":
            *quartiles, superhuman = PRINTED[name.removesuffix(" published")]
            printed = " / ".join(f"{value:.2f}" for value in quartiles) + f", {superhuman:.2f}%"
        rows.append([column.label, len(values), seeds, *_with_intervals(values), printed])
    header = ["algorithm", "games", "seeds", "25%", "50%", "75%", "superhuman", "the paper prints"]
    return table(header, rows)


def _interval(values: Games) -> np.ndarray | None:
    return interval(np.random.default_rng(0), values, percentiles)


def _with_intervals(values: Games) -> list[str]:
    found, ends = percentiles(values), _interval(values)
    cells = [*(f"{value:.3f}" for value in found[:3]), f"{found[3]:.2f}%"]
    if ends is None:
        return cells
    rows = zip(cells, *ends, (3, 3, 3, 2), strict=True)
    return [f"{cell} ({low:.{digits}f} to {high:.{digits}f})" for cell, low, high, digits in rows]
