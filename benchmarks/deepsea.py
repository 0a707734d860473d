"""Episodes until DeepSea is learnt from pictures, by the field's network and updates.

    python benchmarks/deepsea.py --agents su-plus hyperagent --sizes 20 30 --seeds 10

A picture of N × N places, an MLP of two layers of 64, batches of 128, one update at every step, a
target network that follows every 4 updates, γ = 0.99 (Li et al. 2024). The learning rate of SU+ is
2e-3 and its replay prioritised(0.6); all others have 1e-3 and uniform draws. Every 20 episodes the
greedy policy plays one. Two numbers for each run, in episodes:

- greedy: the first of three tests in a row with the optimal return of 0.99;
- samples: the end of the first interval in which every training episode had that return, so that
  every sample of the belief had learnt it, as the field asks of 100 test episodes.

Each run is a line of JSON in `--out`; those that are there are not trained again.
"""

import argparse
import dataclasses
import json
import statistics
import time
from pathlib import Path
from typing import Any

import surveyor as sv
from surveyor.runs import api
from surveyor.training import runner

FIELD: dict[str, Any] = {
    "hidden": 64,
    "batch_size": 128,
    "target_every": 4,
    "replay_capacity": 100_000,
} | {"train_every": 1, "gradient_steps": 1, "envs": 1, "n_step": 1, "warmup": 128}
OWN: dict[str, dict[str, Any]] = {
    "su-plus": {"learning_rate": 2e-3, "warmup": 0, "replay": "prioritised(0.6)"},
    "hyperagent-ois": {"target": "optimistic"},
    "dqn": {"epsilon_steps": 10_000},
}
EVERY, IN_A_ROW, OPTIMAL = 20, 3, 0.98
PUBLISHED = {20: (415, 330), 30: (953, 513), 40: (1385, 770), 50: (1850, 1128), 100: (4287, 2889)}
"""Median episodes of HyperAgent and of its optimistic variant, read off Li et al. (2024)."""


def train(name: str, size: int, seed: int, episodes: int) -> dict[str, Any]:
    """Return the outcome of one run."""
    agent: Any = sv.agents.preset(name.removesuffix("-ois"), "classic")
    agent = dataclasses.replace(agent, **FIELD | OWN.get(name, {}))
    config = api.configure(agent, f"DeepSea-{size}", steps=episodes * size, seed=seed)
    trained: Any = runner(config.task, config.make())
    trained.rounds_per_record = EVERY * size  # a round is one step
    began, tests, samples = time.monotonic(), 0, None
    greedy = at = None
    for chunk in trained.chunks(trained.start()):
        record = chunk.records[-1]
        at = record["episodes"]
        played = trained.play(chunk.loop.agent_state, 1, seed)
        tests = tests + 1 if played.returns[0] > OPTIMAL else 0
        if tests == IN_A_ROW and greedy is None:
            greedy = at - (IN_A_ROW - 1) * EVERY
        if samples is None and (record["return"] or 0.0) > OPTIMAL:
            samples = at
        if greedy is not None and samples is not None:
            break
    seconds = round(time.monotonic() - began, 1)
    found = {"greedy": greedy, "samples": samples, "episodes": at, "seconds": seconds}
    return {"agent": name, "size": size, "seed": seed, **found}


def median(found: list[int | None]) -> str:
    """Return the median, with unsolved runs as never, and how many were solved."""
    solved = sum(each is not None for each in found)
    middle = statistics.median_high([float("inf") if x is None else x for x in found])
    return f"{'–' if middle == float('inf') else round(middle)} ({solved} of {len(found)})"


def table(runs: list[dict[str, Any]]) -> str:
    """Return the medians of every agent and size."""
    lines = ["| N | agent | greedy | samples | range of greedy | seconds a run | published |"]
    lines.append("|---:|---|---:|---:|---|---:|---:|")
    for size, name in sorted({(run["size"], run["agent"]) for run in runs}):
        mine = [run for run in runs if (run["size"], run["agent"]) == (size, name)]
        greedy, samples = ([run[key] for run in mine] for key in ("greedy", "samples"))
        solved = [each for each in greedy if each is not None]
        spread = f"{min(solved)}–{max(solved)}" if solved else "–"
        seconds = statistics.fmean(run["seconds"] for run in mine)
        known = dict(zip(("hyperagent", "hyperagent-ois"), PUBLISHED.get(size, ()), strict=False))
        cells = [f"{size}", name, median(greedy), median(samples), spread, f"{seconds:.0f}"]
        lines.append(f"| {' | '.join(cells)} | {known.get(name, '')} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", nargs="+", default=["su-plus", "hyperagent", "dqn"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[20, 30, 40, 50])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=2_000, help="budget of a run")
    parser.add_argument("--out", type=Path, default=Path("deepsea.jsonl"))
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    runs = [json.loads(line) for line in lines]
    known = {(run["agent"], run["size"], run["seed"]) for run in runs}
    for size in options.sizes:
        for name in options.agents:
            for seed in range(options.seeds):
                if (name, size, seed) in known:
                    continue
                runs.append(train(name, size, seed, options.episodes))
                print(json.dumps(runs[-1]), flush=True)
                with options.out.open("a") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
    print(f"\n{table(runs)}")


if __name__ == "__main__":
    main()
