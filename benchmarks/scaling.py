"""Compare ways to show MiniGrid's symbols to a network: the study behind docs/results/scaling.md.

    python benchmarks/scaling.py MiniGrid-Empty-8x8-v0 --steps 24000 --seeds 3
    python benchmarks/scaling.py MiniGrid-DoorKey-5x5-v0 --steps 60000 --seeds 3 --n-step 1

Each way is a wrapper of the 7 × 7 view, trained by DQN with `scale=False`; a line has the mean
training return in each quarter of a run.
"""

import argparse
import dataclasses
import time
from functools import partial

import gymnasium
import minigrid as minigrid  # registers its environments
import numpy as np

import surveyor as sv

COUNTS = (11, 6, 3)
"""Kinds, colours and states of objects."""
MEAN, DEVIATION = np.array([1.1, 1.3, 0.05]), np.array([1.0, 2.0, 0.3])
"""Approximate values of each channel in random play."""
WAYS = {
    "divided by 255": lambda x: x / 255,
    "ranges": lambda x: x / (np.array(COUNTS) - 1),
    "means and deviations": lambda x: (x - MEAN) / DEVIATION,
    "one-hot codes": lambda x: np.concatenate(
        [np.eye(n)[np.minimum(x[..., i], n - 1)] for i, n in enumerate(COUNTS)], axis=-1
    ),
}


def make(name: str, way: str) -> gymnasium.Env:
    """Return an environment whose observation is the view, scaled in one of the ways."""
    channels = sum(COUNTS) if way == "one-hot codes" else 3
    space = gymnasium.spaces.Box(-np.inf, np.inf, (7, 7, channels), np.float32)
    change = lambda obs: WAYS[way](obs["image"]).astype(np.float32)  # noqa: E731
    return gymnasium.wrappers.TransformObservation(gymnasium.make(name), change, space)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, default=24_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-step", type=int, default=3)
    options = parser.parse_args()
    agent = dataclasses.replace(sv.DQN.preset("classic"), n_step=options.n_step)
    print(f"| {options.env} | seed | return in each quarter | seconds |\n|---|---|---|---|")
    for way in WAYS:
        for seed in range(options.seeds):
            began = time.perf_counter()
            env = partial(make, options.env, way)
            run = sv.train(agent, env, steps=options.steps, seed=seed, scale=False)
            quarters = np.array_split(np.array([r["return"] for r in run.metrics], float), 4)
            means = ", ".join(f"{np.nanmean(quarter):.2f}" for quarter in quarters)
            print(f"| {way} | {seed} | {means} | {time.perf_counter() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
