"""Tables 2 and 3: the hyperparameters of the tabular experiments, and the searches behind them."""

import dataclasses
import itertools
from typing import Any

from surveyor import SU, BootDQN
from surveyor.agents.base import Agent
from surveyor.agents.options import require
from surveyor.paper.options import GridSearchOptions, Problem, Source, TableOptions
from surveyor.paper.studies import Cell, Outcome, train_cells
from surveyor.sweeps.text import table, write

LABELS: dict[Source, str] = {"released": "SU (released)", "text": "SU (text)"}
"""Names in tables of the sources of SU's settings."""
Point = tuple[Any, ...]
Grid = dict[str, tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Search:
    """The search of one algorithm's hyperparameters."""

    number: int
    """Number of the paper's table."""
    algorithm: str
    """Column of the table."""
    env: str
    presets: dict[str, Agent]
    """Presets by their names in tables; the search starts from one of them."""
    grid: Grid
    """Values to search, by hyperparameter."""
    printed: dict[str, Any]
    """The paper's winner."""

    def cells(self, source: Source, *, seeds: int, episodes: int, thin: bool) -> dict[Point, Cell]:
        """Return a cell for each point of the grid; the rest of SU's settings are of `source`.

        If `thin`, take the first and last values only, and one width of the network.
        """
        ends = {name: values[:: max(1, len(values) - 1)] for name, values in self.grid.items()}
        ends |= {name: ends[name][:1] for name in ("features", "hidden") if name in ends}
        name, agent = LABELS[source], self.presets.get(LABELS[source])
        if agent is None:  # Bootstrap+Prior
            name, agent = self.algorithm, self.presets["figure 2"]
        cells = {}
        for point in itertools.product(*(ends if thin else self.grid).values()):
            chosen = dataclasses.replace(agent, **dict(zip(self.grid, point, strict=True)))
            cells[point] = Cell(name, self.env, chosen, seeds, episodes)
        return cells


def _su(number: int, problem: Problem, env: str, grid: Grid, printed: Point) -> Search:
    released, text = SU.preset(problem, "released"), SU.preset(problem, "text")
    presets: dict[str, Agent] = {"SU (released)": released, "SU (text)": text}
    grid = grid | {"theta": (1.0, 1e2, 1e4), "beta": (1e-3, 1e-2, 1e-1)}
    return Search(number, "SU", env, presets, grid, dict(zip(grid, printed, strict=True)))


def _bootstrap(algorithm: str, released: str, shown: str, printed: Point) -> Search:
    names = {"released code": released, "figure 2": shown}
    presets: dict[str, Agent] = {key: BootDQN.preset("tree", name) for key, name in names.items()}
    winner = dict(zip(BOOTSTRAP_GRID, printed, strict=True))
    return Search(2, algorithm, "Tree-100", presets, BOOTSTRAP_GRID, winner)


BOOTSTRAP_GRID: Grid = {
    "hidden": (20, 40),
    "ensemble": (10, 20, 40),
    "bootstrap": (0.1, 0.25, 0.75, 0.9, 1.0),
    "prior_weight": (0.0, 0.1, 1.0, 10.0),
}
SEARCHES: dict[Problem, list[Search]] = {
    "tree": [
        _su(2, "tree", "Tree-100", {"features": (20, 40)}, (20, 1e4, 1e-3)),
        _bootstrap("B+P 1x", "released_1x", "paper_1x", (20, 10, 0.75, 0.1)),
        _bootstrap("B+P 25x", "released_25x", "tree_25x", (20, 10, 1.0, 0.0)),
    ],
    "chain": [_su(3, "chain", "Chain-20", {"gradient_steps": (10, 20, 40)}, (40, 1.0, 1e-2))],
}
"""Searches of the paper: on the tree at L = 100; at which L on the chain, it does not say."""


def show(options: TableOptions) -> None:
    """Write tables.json and tables.md: the paper's values beside those of the presets."""
    lines, data = ["# Tables 2 and 3: hyperparameters", ""], []
    searches = [(problem, search) for problem, group in SEARCHES.items() for search in group]
    for columns in dict.fromkeys(tuple(search.presets) for _, search in searches):
        header = ["table", "algorithm", "hyperparameter", "search set", "paper's value", *columns]
        rows = [
            [
                f"{search.number} ({problem})",
                search.algorithm,
                name,
                "{" + ", ".join(f"{value:g}" for value in values) + "}",
                f"{search.printed[name]:g}",
                *(f"{getattr(agent, name):g}" for agent in search.presets.values()),
            ]
            for problem, search in searches
            if tuple(search.presets) == columns
            for name, values in search.grid.items()
        ]
        lines += [*table(header, rows), ""]
        data += [dict(zip(header, row, strict=True)) for row in rows]
    write(options.out, "tables", data, lines)


def gridsearch(options: GridSearchOptions) -> None:
    """Repeat the paper's search, and write its points in the order of their success."""
    seeds = options.seeds or (1 if options.quick else 3)
    episodes = 600 if options.quick else 5000
    lines, data = [f"# Grid search: {options.problem}", ""], []
    searches = [s for s in SEARCHES[options.problem] if options.algorithm in ("all", s.algorithm)]
    require(searches != [], f"There is no search of {options.algorithm} on the {options.problem}.")
    for search in searches:
        cells = search.cells(options.source, seeds=seeds, episodes=episodes, thin=options.quick)
        outcomes = train_cells(cells.values(), options.out / "runs")
        ranked = sorted(zip(cells, outcomes, strict=True), key=_rank)
        rows = []
        for point, outcome in ranked:
            _, _, solved, _, median = outcome.cells
            rows.append([*(f"{value:g}" for value in point), solved, median])
        point, best = ranked[0]
        winner = _text(dict(zip(search.grid, point, strict=True)))
        count = f"{seeds} {'seed' if seeds == 1 else 'seeds'}"
        lines += [f"## {best.algorithm} on {search.env}, {count}", ""]
        lines.append(f"Winner here: {winner if best.solved else 'none, no point was solved'}.  ")
        lines += [f"The paper's: {_text(search.printed)}.", ""]
        lines += [*table([*search.grid, "solved", "median episodes"], rows), ""]
        data.append({"algorithm": best.algorithm, "env": search.env, "rows": rows})
    write(options.out, f"gridsearch-{options.problem}", data, lines)


def _rank(pair: tuple[Point, Outcome]) -> tuple[int, float]:
    """Return a key by which the most solved seeds come first, then the smallest median."""
    _, outcome = pair
    return -outcome.solved, float("inf") if outcome.median is None else outcome.median


def _text(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in values.items())
