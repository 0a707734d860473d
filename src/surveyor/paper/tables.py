"""Tables 2 and 3: the hyperparameters of the tabular experiments, and the searches behind them."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any, Literal

from surveyor.agents import SU, Agent, BootDQN, sources
from surveyor.paper.studies import Cell, carry_out
from surveyor.sweeps.text import table, write

Problem = Literal["tree", "chain"]
Source = Literal["ours", "text", "released"]


@dataclasses.dataclass(frozen=True)
class Search:
    """One algorithm's search: what is varied, around what, and what the paper found best."""

    algorithm: str
    env: str
    bases: dict[Source, Agent]
    """What is not searched, as this library, the paper's text and its released code have it."""
    grid: dict[str, tuple[Any, ...]]
    printed: dict[str, Any]
    """The paper's winner."""

    def cells(
        self, source: Source, *, seeds: int, episodes: int, thin: bool
    ) -> dict[tuple[Any, ...], Cell]:
        """A cell for each point of the grid, or with `thin` for its first and last values, and one
        width of the network."""
        ends = {name: values[:: max(1, len(values) - 1)] for name, values in self.grid.items()}
        ends |= {name: ends[name][:1] for name in ("features", "hidden") if name in ends}
        points = itertools.product(*(ends if thin else self.grid).values())
        return {
            point: Cell(
                self.algorithm,
                self.env,
                dataclasses.replace(self.bases[source], **dict(zip(self.grid, point, strict=True))),
                seeds,
                episodes,
            )
            for point in points
        }


THETA, BETA = (1.0, 1e2, 1e4), (1e-3, 1e-2, 1e-1)
BOOTSTRAP_GRID: dict[str, tuple[Any, ...]] = {
    "hidden": (20, 40),
    "ensemble": (10, 20, 40),
    "bootstrap": (0.1, 0.25, 0.75, 0.9, 1.0),
    "prior_weight": (0.0, 0.1, 1.0, 10.0),
}


def _everywhere(agent: Agent) -> dict[Source, Agent]:
    """One agent for all sources, which differ in nothing that is not searched."""
    return {"ours": agent, "text": agent, "released": agent}


SEARCHES: dict[Problem, list[Search]] = {
    "tree": [
        Search(
            "SU",
            "Tree-100",
            {"ours": SU.tree(), "text": sources.text_tree(), "released": sources.released_tree()},
            {"features": (20, 40), "theta": THETA, "beta": BETA},
            {"features": 20, "theta": 1e4, "beta": 1e-3},
        ),
        Search(
            "B+P 1x",
            "Tree-100",
            _everywhere(BootDQN.paper_1x()),
            BOOTSTRAP_GRID,
            {"hidden": 20, "ensemble": 10, "bootstrap": 0.75, "prior_weight": 0.1},
        ),
        Search(
            "B+P 25x",
            "Tree-100",
            _everywhere(BootDQN.tree_25x()),
            BOOTSTRAP_GRID,
            {"hidden": 20, "ensemble": 10, "bootstrap": 1.0, "prior_weight": 0.0},
        ),
    ],
    "chain": [
        Search(
            "SU",
            "Chain-20",
            {
                "ours": SU.chain(),
                "text": sources.text_chain(),
                "released": sources.released_chain(),
            },
            {"gradient_steps": (10, 20, 40), "theta": THETA, "beta": BETA},
            {"gradient_steps": 40, "theta": 1.0, "beta": 1e-2},
        )
    ],
}
"""The paper searches the tree at L = 100 and does not say at which L it searched the chain."""


def show(out: Path) -> None:
    """Tables 2 and 3 as the paper prints them, beside this library's presets."""
    rows = [
        [
            f"{number} ({problem})",
            search.algorithm,
            name,
            "{" + ", ".join(f"{value:g}" for value in values) + "}",
            f"{search.printed[name]:g}",
            f"{getattr(search.bases['ours'], name):g}",
        ]
        for number, (problem, searches) in zip((2, 3), SEARCHES.items(), strict=True)
        for search in searches
        for name, values in search.grid.items()
    ]
    header = ["table", "algorithm", "hyperparameter", "search set", "paper's value", "our preset"]
    lines = ["# Tables 2 and 3: hyperparameters", "", *table(header, rows)]
    write(out, "tables", [dict(zip(header, row, strict=True)) for row in rows], lines)


def gridsearch(
    problem: Problem,
    out: Path,
    *,
    quick: bool,
    seeds: int,
    algorithm: str = "all",
    source: Source = "ours",
) -> None:
    """Run the paper's own search and print its winner: most seeds solved, then the soonest."""
    lines, data = [f"# Grid search: {problem}", ""], []
    for search in SEARCHES[problem]:
        if algorithm not in ("all", search.algorithm):
            continue
        cells = search.cells(source, seeds=seeds, episodes=600 if quick else 5000, thin=quick)
        outcomes = carry_out(cells.values(), out / "runs")
        ranked = sorted(
            zip(cells, outcomes, strict=True),
            key=lambda pair: (-pair[1].solved, pair[1].median or float("inf")),
        )
        rows = [
            [
                *(f"{value:g}" for value in point),
                f"{outcome.solved} of {seeds}",
                "–" if outcome.median is None else f"{outcome.median:g}",
            ]
            for point, outcome in ranked
        ]
        best = ", ".join(
            f"{name} {value:g}" for name, value in zip(search.grid, ranked[0][0], strict=True)
        )
        printed = ", ".join(f"{name} {value:g}" for name, value in search.printed.items())
        winner = best if ranked[0][1].solved else "none: no point was solved"
        lines += [
            f"## {search.algorithm} on {search.env}, {seeds} seed{'s'[: seeds > 1]}",
            "",
            f"Winner here: {winner}.  ",
            f"The paper's: {printed}.",
            "",
            *table([*search.grid, "solved", "median episodes"], rows),
            "",
        ]
        data.append({"algorithm": search.algorithm, "env": search.env, "rows": rows})
    write(out, f"gridsearch-{problem}", data, lines)
