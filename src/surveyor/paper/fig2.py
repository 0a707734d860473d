"""Figure 2: median episodes to learn the binary tree, for every algorithm; and at what cost."""

from pathlib import Path

import numpy as np
from scipy import stats

from surveyor import plots
from surveyor import BDQN, PSRL, SU, UBE, BootDQN, SUPlus
from surveyor.agents.uniform import median_episodes
from surveyor.paper.studies import Cell, Outcome, carry_out
from surveyor.sweeps.text import table, write

EPISODES = 5000
AUTHORS = {
    10: "10–20",
    50: "60–200",
    100: "150–220",
    150: "390–410",
    200: "520–540",
    250: "760–800",
}
"""Episodes to solve with the released code of SU, three seeds."""

LARGE = {
    "Bootstrap+Prior 1x": BootDQN.preset("tree", "paper_1x"),
    "Bootstrap+Prior 25x": BootDQN.preset("tree", "tree_25x"),
    "SU (released)": SU.preset("tree", "released"),
    "SU+": SUPlus.preset("tree"),
    "PSRL": PSRL.preset("tree"),
}
PRINTED = {
    "SU (text)": SU.preset("tree", "text"),
    "Bootstrap+Prior 25x, printed": BootDQN.preset("tree", "paper_25x"),
}
"""Table 2's own settings, at a few sizes."""
SMALL = {"BDQN": BDQN(), "UBE": UBE()}
ORDER = ["BDQN", "UBE", "Bootstrap+Prior 1x", "Bootstrap+Prior 25x", "SU", "PSRL"]
"""The panels, from left to right; PSRL is not in the paper's figure."""


def cells(*, quick: bool) -> list[Cell]:
    """Every point of the figure; more seeds where a rate is to be told from a coin's."""
    large, printed, small = list(range(10, 251, 10)), [10, *range(50, 251, 50)], list(range(4, 14))
    seeds, coins = 5, 40
    if quick:
        large, printed, small, seeds, coins = [10, 40, 100], [], [6, 8], 3, 10
    groups = ((LARGE, large, seeds), (PRINTED, printed, seeds), (SMALL, small, coins))
    return [
        Cell(name, f"Tree-{size}", agent, count, 1000 if quick else EPISODES)
        for agents, sizes, count in groups
        for name, agent in agents.items()
        for size in sizes
    ]


def run(out: Path, *, quick: bool) -> None:
    """Train, and write fig2.json, fig2.md and fig2.png."""
    plots.require_matplotlib()
    outcomes = carry_out(cells(quick=quick), out / "runs")
    lines = [
        "# Figure 2: the binary tree",
        "",
        *_episodes(outcomes),
        "",
        *_against_uniform(outcomes),
    ]
    write(out, "fig2", [outcome.to_json() for outcome in outcomes], lines)
    plots.figure2(outcomes, ORDER, out / "fig2.png")


def _episodes(outcomes: list[Outcome]) -> list[str]:
    rows = []
    for name in [*ORDER, *PRINTED]:
        for outcome in sorted(
            (outcome for outcome in outcomes if outcome.algorithm == name), key=lambda o: o.size
        ):
            rows.append(
                [
                    name,
                    outcome.size,
                    f"{outcome.solved} of {len(outcome.runs)}",
                    "–" if outcome.median is None else f"{outcome.median:g}",
                    AUTHORS.get(outcome.size, "") if name == "SU" else "",
                    f"{median_episodes(outcome.size):.3g}",
                    f"{outcome.mean('gradient_steps'):,.0f}",
                    f"{outcome.mean('seconds'):.1f}",
                ]
            )
    budget = max(outcome.budget for outcome in outcomes)
    return [
        f"Median episode from which the greedy policy is optimal, budget {budget} episodes. "
        "Gradient steps and seconds of training are means over the runs, solved or not.",
        "",
        *table(
            [
                "algorithm",
                "L",
                "solved",
                "median episodes",
                "authors' code",
                "uniform",
                "gradient steps",
                "seconds",
            ],
            rows,
        ),
    ]


def _against_uniform(outcomes: list[Outcome]) -> list[str]:
    """First successes of BDQN and UBE beside those of a coin, with a 95% interval."""
    rows = []
    for name in SMALL:
        mine = sorted((o for o in outcomes if o.algorithm == name), key=lambda o: o.size)
        for label, group in [*((f"{o.size}", [o]) for o in mine), ("all", mine)]:
            rate, low, high, found = success_rate(group)
            verdict = "better" if low > 1 else "no better"
            rows.append([name, label, found, f"{rate:.2f}", f"{low:.2f} – {high:.2f}", verdict])
    return [
        "Chance of a first success in an episode, as a multiple of uniform exploration's 2^-L.",
        "",
        *table(
            ["algorithm", "L", "first successes", "times 2^-L", "95% interval", "verdict"], rows
        ),
    ]


def success_rate(outcomes: list[Outcome]) -> tuple[float, float, float, int]:
    """First successes in these runs over those that a fair coin would have had in as many episodes.

    Returns the ratio, its exact 95% Poisson interval, and the number of first successes.
    """
    found, expected = 0, 0.0
    for outcome in outcomes:
        for run in outcome.runs:
            found += run["first_success"] is not None
            expected += (run["first_success"] or run["episodes"]) * 2.0**-outcome.size
    low = stats.gamma.ppf(0.025, found) if found else 0.0
    high = stats.gamma.ppf(0.975, found + 1)
    return found / expected, float(low) / expected, float(high) / expected, found


def medians(outcomes: list[Outcome], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and medians of one algorithm, where there is a median."""
    found = [(o.size, o.median) for o in outcomes if o.algorithm == name and o.median is not None]
    points = np.array(sorted(found), float).reshape(-1, 2)
    return points[:, 0], points[:, 1]
