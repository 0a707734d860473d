"""Agents beside each other on MinAtar: curves, interquartile means and bootstrap intervals.

    python benchmarks/minatar_study.py --agents su dqn --seeds 3 --steps 1000000 --out runs/minatar

Trains every agent's `minatar` preset on all five games, on all cores; given again it goes on where
it was stopped and repeats nothing. Writes minatar.md, minatar.json and minatar.png to the folder.

The score of a run is the mean return of its training episodes over the last tenth of its steps. It
is normalised for each game so that 0 is the uniform policy and 1 the mean of DQN.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from surveyor import plots
from surveyor.envs.functional import MINATAR
from surveyor.training import api, parallel
from surveyor.training.folder import Record, RunFolder
from surveyor.training.progress import Overview

RESAMPLES = 2000


def score(records: list[Record], steps: int) -> float:
    """Mean return over the last tenth."""
    late = [r["return"] for r in records if r["step"] > 0.9 * steps and r["return"] is not None]
    return float(np.mean(late)) if late else float("nan")


def iqm(values: np.ndarray) -> float:
    """The mean of the middle half (with the share of the quartiles' own values)."""
    ordered = np.sort(values.ravel())
    n = len(ordered)
    edges = np.arange(n + 1) / n
    weight = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return float(np.sum(weight * ordered) / np.sum(weight))


def interval(scores: np.ndarray, statistic: Any, seed: int = 0) -> tuple[float, float]:
    """95% by the bootstrap, drawing seeds with replacement within every game (games × seeds)."""
    rng, (games, seeds) = np.random.default_rng(seed), scores.shape
    draws = []
    for _ in range(RESAMPLES):
        chosen = rng.integers(0, seeds, (games, seeds))
        draws.append(statistic(np.take_along_axis(scores, chosen, axis=1)))
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def train(agents: list[str], games: list[str], seeds: int, steps: int, out: Path) -> dict:
    """All runs that have not ended yet; returns every run's records."""
    configs = [
        api.configure(agent, f"MinAtar/{game}", seed=seed, steps=steps)
        for agent in agents
        for game in games
        for seed in range(seeds)
    ]
    waiting = [config for config in configs if api.outcome(config, out) is None]
    with Overview(len(configs), len(configs) - len(waiting)) as overview:
        if waiting:
            groups: dict[Any, list[int]] = {}
            for place, config in enumerate(waiting):
                groups.setdefault((config.agent, config.env), []).append(place)
            parallel.train_all(
                waiting,
                out,
                lambda place, record, now: overview.update(waiting[place], record, now),
                list(groups.values()),
            )
    found: dict[tuple[str, str, int], list[Record]] = {}
    names = [(agent, game, s) for agent in agents for game in games for s in range(seeds)]
    for name, config in zip(names, configs, strict=True):
        found[name] = RunFolder(out / config.name).metrics()
    return found


def table(scores: dict[str, np.ndarray], games: list[str]) -> list[str]:
    """Scores for each game, and the interquartile mean of what is normalised."""
    lines = ["| | " + " | ".join(games) + " | IQM, normalised |", "|---" * (len(games) + 2) + "|"]
    floor, top = scores["uniform"].mean(1), scores["dqn"].mean(1)
    for agent, values in scores.items():
        cells = []
        for row in values:
            low, high = interval(row[None], np.mean)
            cells.append(f"{row.mean():.2f} ({low:.2f} to {high:.2f})")
        normalised = (values - floor[:, None]) / (top - floor)[:, None]
        low, high = interval(normalised, iqm)
        cells.append(f"{iqm(normalised):.2f} ({low:.2f} to {high:.2f})")
        lines.append(f"| {agent} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", nargs="+", default=["su", "dqn"])
    parser.add_argument("--games", nargs="+", default=list(MINATAR))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("runs/minatar"))
    options = parser.parse_args()
    agents = [*dict.fromkeys([*options.agents, "dqn", "uniform"])]
    runs = train(agents, options.games, options.seeds, options.steps, options.out)
    scores = {
        agent: np.array(
            [
                [score(runs[agent, game, s], options.steps) for s in range(options.seeds)]
                for game in options.games
            ]
        )
        for agent in agents
    }
    lines = table(scores, options.games)
    print("\n".join(lines))
    (options.out / "minatar.md").write_text("\n".join(lines) + "\n")
    data = {agent: values.tolist() for agent, values in scores.items()}
    (options.out / "minatar.json").write_text(json.dumps(data, indent=2) + "\n")
    picture = plots.curves(
        {(agent, game): [runs[agent, game, s] for s in range(options.seeds)]
         for agent in agents if agent != "uniform" for game in options.games},
        options.out / "minatar.png",
    )  # fmt: skip
    print(f"The picture is {picture}")


if __name__ == "__main__":
    main()
