"""Table 1: percentiles of human-normalised scores over the 49 Atari games."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from surveyor.envs.atari import Table
from surveyor.paper.atari_scores import CHOSEN, Columns, Kind, beside, published, read
from surveyor.paper.options import AtariTableOptions
from surveyor.sweeps import statistics
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
    own, score = read(options)
    show(options.out, options.human, own, score)


def show(out: Path, human: Table, own: Columns | None = None, score: Kind = "best") -> None:
    """Write table1.json and table1.md.

    **Arguments:**

    - `out`: the folder for the files.
    - `human`: the source of human and random scores.
    - `own`: the columns of own runs, to show above the published ones; None for those alone.
    - `score`: the kind of score in `own`.
    """
    columns = beside(own) if own else published()
    lines = [
        "# Table 1: Atari 2600",
        "",
        f"Percentiles over games of (score - random) / (human - random), for {EPISODES[human]}.",
        "",
        *rows_of(columns, human),
        "",
        CHOSEN[score] if own else NOTES[human],
    ]
    data = {}
    for key, column in columns.items():
        values = column.normalised(list(column.scores), human)
        data[key] = {"percentiles": percentiles(values).tolist(), "games": len(values)}
        if (interval := _interval(values)) is not None:
            data[key] |= {"low": interval[0].tolist(), "high": interval[1].tolist()}
    about = {"human": human, "score": score if own else "published"}
    write(out, "table1", {**about, "columns": data}, lines)


def percentiles(games: list[np.ndarray]) -> np.ndarray:
    """Return the quartiles over games of the seeds' means, and the percentage above a human."""
    means = np.array([seeds.mean() for seeds in games])
    return np.array([*np.percentile(means, (25, 50, 75)), 100 * np.mean(means > 1)])


def rows_of(columns: Columns, human: Table) -> list[str]:
    """Return the table's lines, with 95% intervals where a column has more than one seed.

    **Arguments:**

    - `columns`: the algorithms by name.
    - `human`: the source of human and random scores.
    """
    rows = []
    for name, column in columns.items():
        values = column.normalised(list(column.scores), human)
        least, most = (f([len(seeds) for seeds in values]) for f in (min, max))
        seeds = "" if column.published else str(least) if least == most else f"{least} to {most}"
        as_printed = column.published and len(values) == 49 and human == "paper"
        printed = ""
        if as_printed:
            *quartiles, superhuman = PRINTED[name.removesuffix(" published")]
            printed = " / ".join(f"{value:.2f}" for value in quartiles) + f", {superhuman:.2f}%"
        rows.append([column.label, len(values), seeds, *_with_intervals(values), printed])
    header = ["algorithm", "games", "seeds", "25%", "50%", "75%", "superhuman", "the paper prints"]
    return table(header, rows)


def _interval(values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return 95% intervals of the percentiles, or None if every game has one seed."""
    if all(len(seeds) == 1 for seeds in values):
        return None
    draws = [percentiles(again) for again in _resamples(values)]
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    return low, high


def _with_intervals(values: list[np.ndarray]) -> list[str]:
    found, interval = percentiles(values), _interval(values)
    if interval is None:
        return [*(f"{value:.3f}" for value in found[:3]), f"{found[3]:.2f}%"]
    low, high = interval
    cells = [f"{found[i]:.3f} ({low[i]:.3f} to {high[i]:.3f})" for i in range(3)]
    return [*cells, f"{found[3]:.2f}% ({low[3]:.2f} to {high[3]:.2f})"]


def _resamples(values: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield stratified bootstrap samples: seeds with replacement within every game."""
    rng = np.random.default_rng(0)
    for _ in range(statistics.RESAMPLES):
        yield [seeds[rng.integers(0, len(seeds), len(seeds))] for seeds in values]
