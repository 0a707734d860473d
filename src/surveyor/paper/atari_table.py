"""Table 1 and figure 4: the 49 Atari games, from published scores or from one's own runs."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from surveyor import plots
from surveyor.envs.atari import Table, human_normalised, scores
from surveyor.errors import SurveyorError
from surveyor.sweeps import statistics
from surveyor.sweeps.text import table, write

PUBLISHED = {
    "su": "Successor Uncertainties",
    "bootdqn": "Bootstrapped DQN",
    "ube": "UBE",
    "dqn": "DQN + ε-greedy",
}
PRINTED = {
    "su": (1.06, 2.09, 5.95, 77.55),
    "bootdqn": (0.76, 1.60, 5.16, 67.35),
    "ube": (0.38, 1.07, 4.14, 51.02),
    "dqn": (0.50, 1.00, 3.41, 48.98),
}
"""Table 1 as the paper prints it: percentiles and share of superhuman games."""
PRINTED_WINS = {"bootdqn": 36, "ube": 43, "dqn": 42}
"""On how many of 49 games SU is better, by the caption of figure 4."""
CLIP = 2.5


@dataclasses.dataclass(frozen=True)
class Column:
    """One algorithm: its raw scores by game, over seeds."""

    label: str
    scores: dict[str, list[float]]
    published: bool = False

    def normalised(self, games: list[str], human: Table) -> list[np.ndarray]:
        """For each game the seeds, from 0 for the random policy to 1 for a human."""
        return [
            np.array([human_normalised(game, score, human) or 0.0 for score in self.scores[game]])
            for game in games
        ]


def published() -> dict[str, Column]:
    """The columns of the paper's table 5."""
    return {
        name: Column(label, {game: [row[name]] for game, row in scores().items()}, published=True)
        for name, label in PUBLISHED.items()
    }


def percentiles(games: list[np.ndarray]) -> np.ndarray:
    """The quartiles over games of the mean over seeds, and the percentage of superhuman games."""
    means = np.array([seeds.mean() for seeds in games])
    return np.array([*np.percentile(means, (25, 50, 75)), 100 * np.mean(means > 1)])


def table1(columns: dict[str, Column], human: Table) -> list[str]:
    """The paper's table 1, with 95% intervals where there is more than one seed."""
    rows = []
    for name, column in columns.items():
        values = column.normalised(list(column.scores), human)
        least, most = (f([len(seeds) for seeds in values]) for f in (min, max))
        seeds = "" if column.published else str(least) if least == most else f"{least} to {most}"
        row = [column.label, len(values), seeds, *_with_intervals(values)]
        as_printed = column.published and len(values) == 49 and human == "paper"
        printed = PRINTED[name.removesuffix(" published")] if as_printed else ()
        said = " / ".join(f"{value:.2f}" for value in printed[:3])
        row.append(f"{said}, {printed[3]:.2f}%" if printed else "")
        rows.append(row)
    header = ["algorithm", "games", "seeds", "25%", "50%", "75%", "superhuman", "the paper prints"]
    return table(header, rows)


def _interval(values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """95% of the percentiles; None where there is one seed of each."""
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
    """Stratified: seeds with replacement within every game, of which some may have more."""
    rng = np.random.default_rng(0)
    for _ in range(statistics.RESAMPLES):
        yield [seeds[rng.integers(0, len(seeds), len(seeds))] for seeds in values]


def differences(ours: Column, theirs: Column, human: Table) -> dict[str, float]:
    """By how much human-normalised scores differ, game by game, where both have one."""
    return {game: gap for game, (gap, _, _) in _gaps(ours, theirs, human).items()}


def _gaps(
    ours: Column, theirs: Column, human: Table
) -> dict[str, tuple[float, float | None, float | None]]:
    """The same with 95% intervals, where there are several seeds."""
    rng, found = np.random.default_rng(0), {}
    games = [game for game in ours.scores if game in theirs.scores]
    pairs = zip(ours.normalised(games, human), theirs.normalised(games, human), strict=True)
    for game, (mine, other) in zip(games, pairs, strict=True):
        low = high = None
        if len(mine) > 1 or len(other) > 1:
            draws = [_drawn(rng, mine) - _drawn(rng, other) for _ in range(statistics.RESAMPLES)]
            low, high = (float(x) for x in np.quantile(draws, (0.025, 0.975)))
        found[game] = (float(mine.mean() - other.mean()), low, high)
    return found


def _drawn(rng: np.random.Generator, seeds: np.ndarray) -> float:
    return float(seeds[rng.integers(0, len(seeds), len(seeds))].mean())


def wins(ours: Column, theirs: Column) -> tuple[int, int, int]:
    """On how many games the first is better, as good, and worse, by raw scores."""
    games = [game for game in ours.scores if game in theirs.scores]
    gaps = [np.mean(ours.scores[game]) - np.mean(theirs.scores[game]) for game in games]
    signs = [int(np.sign(gap)) for gap in gaps]
    return signs.count(1), signs.count(0), signs.count(-1)


NOTES = {
    "paper": (
        "Where the paper prints something else: SU's 75% is 5.935, not 5.95; DQN's 0.50 / 1.00 / "
        "3.41 is what one gets without one of the games with a low score, such as Alien; its "
        "48.98% are of all 49."
    ),
    "30min": (
        "With the human and random scores of 30-minute episodes, which most later work uses, the "
        "medians have the same order, and SU's is 1.81 in place of 2.09: the verdict depends on "
        "the table."
    ),
}
"""What is to be said of the published columns."""


CHOSEN = {
    "best": "Of each of your runs its best test, as in the paper: optimistic, since the test that "
    "is reported is the one that chooses.",
    "last": "Of each of your runs its last test.",
    "mean": "Of each of your runs the mean of its tests.",
    "training": "None of your runs was tested by greedy episodes: of each its mean return in the "
    "last tenth of training.",
}
"""Which of a run's tests counts."""


def show_table1(
    out: Path, human: Table, own: dict[str, Column] | None = None, score: str = "best"
) -> None:
    """Write table1.json and table1.md: published columns, or one's own above them."""
    columns = beside(own) if own else published()
    name = {"paper": "5-minute episodes, as in the paper", "30min": "30-minute episodes"}[human]
    lines = [
        "# Table 1: Atari 2600",
        "",
        f"Percentiles over games of (score - random) / (human - random), for {name}.",
        "",
        *table1(columns, human),
        "",
        *([CHOSEN[score]] if own else [NOTES[human]]),
    ]
    data = {}
    for key, column in columns.items():
        values = column.normalised(list(column.scores), human)
        data[key] = {"percentiles": percentiles(values).tolist(), "games": len(values)}
        if (interval := _interval(values)) is not None:
            data[key] |= {"low": interval[0].tolist(), "high": interval[1].tolist()}
    about = {"human": human, "score": score if own else "published"}
    write(out, "table1", {**about, "columns": data}, lines)


def beside(own: dict[str, Column]) -> dict[str, Column]:
    """One's own columns, and below them the published ones on the same games."""
    games = {game for column in own.values() for game in column.scores}
    rest = {}
    for name, column in published().items():
        known = {game: values for game, values in column.scores.items() if game in games}
        if known:
            label = f"{column.label}, published"
            rest[f"{name} published"] = Column(label, known, published=True)
    return {**own, **rest}


def show_fig4(
    out: Path, human: Table, own: dict[str, Column] | None = None, score: str = "best"
) -> None:
    """Write fig4.json, fig4.md and fig4.png: SU's lead over each other algorithm, game by game."""
    plots.require_matplotlib()
    columns = beside(own) if own else published()
    if "su" not in columns:
        raise SurveyorError("Figure 4 shows SU beside others, and there is no run of SU.")
    su = columns.pop("su")
    others = {
        name: column for name, column in columns.items() if set(column.scores) & set(su.scores)
    }
    if not others:
        raise SurveyorError("There is no game that SU and another algorithm have both played.")
    gaps = {name: _gaps(su, column, human) for name, column in others.items()}
    rows = []
    for name, column in others.items():
        better, equal, worse = wins(su, column)
        printed = "" if own else f"better on {PRINTED_WINS[name]} of 49"
        rows.append([column.label, better, equal, worse, printed])
    lines = [
        "# Figure 4: SU beside each other algorithm",
        "",
        *table(["", "SU better", "equal", "SU worse", "the paper says"], rows),
        "",
        *([CHOSEN[score], ""] if own else [FIG4_NOTE, ""]),
        "Difference of human-normalised scores, with 95% where there are several seeds:",
        "",
        *table(
            ["game", *(column.label for column in others.values())],
            [[game, *(_cell(gaps[n].get(game)) for n in others)] for game in sorted(su.scores)],
        ),
    ]
    found = {n: {game: gap[0] for game, gap in by_game.items()} for n, by_game in gaps.items()}
    labels = {name: column.label for name, column in others.items()}
    out.mkdir(parents=True, exist_ok=True)
    picture = plots.figure4({labels[n]: gap for n, gap in gaps.items()}, CLIP, out / "fig4.png")
    write(out, "fig4", found, lines, picture)


def _cell(gap: tuple[float, float | None, float | None] | None) -> str:
    if gap is None:
        return ""
    value, low, high = gap
    return f"{value:+.3f}" if low is None else f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


FIG4_NOTE = (
    "The caption counts 42 games against DQN: on the published scores SU is better on 41 and as "
    "good on one, Montezuma's Revenge, where both have nothing."
)
