"""What a run will take: time, memory and disk, before it is begun."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np

from surveyor import envs
from surveyor.runs.config import Config
from surveyor.runs.run import Run
from surveyor.training import problems

PROCESS_BYTES = 600_000_000
"""Python, JAX and a compiled program."""
STEPS_PER_SECOND = {"MinAtar": 2_300.0, "ALE": 45.0, "Gymnasium": 550.0}
"""Steps that SU takes on one core without accelerator (docs/results/speed.md)."""
GRADIENT_STEP, ACTING_STEP = 70e-6, 0.4e-6
"""Seconds of a gradient step and of a step in the environment, on trees and chains."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Rough, on one core of the machine that the speeds were measured on."""

    seconds: float
    memory: int
    """Bytes of main memory at its peak."""
    disk: int
    """Bytes of its folder while a checkpoint is replaced."""


def estimates(configs: list[Config]) -> list[Estimate]:
    """Of every run; Atari games are as large as each other."""
    known: dict[tuple[Any, ...], Estimate] = {}
    found = []
    for config in configs:
        family = problems.family(config.env)
        kind = (config.agent, "ALE" if family == "ALE" else config.env, config.budget)
        if kind not in known:
            known[kind] = estimate(config)
        found.append(known[kind])
    return found


def estimate(config: Config) -> Estimate:
    """Time by the speeds above; memory and disk by the arrays that a checkpoint holds."""
    leaves = jax.tree.leaves(Run(config, None, []).runner.frozen_shape())
    size = sum(_size(leaf, config.budget) for leaf in leaves)
    return Estimate(_seconds(config), PROCESS_BYTES + size, 2 * size + 1_000_000)


def _size(leaf: Any, budget: int) -> int:
    """Bytes of an array; of NumPy's, which are a replay, those that the run will come to fill."""
    rows = leaf.shape[:1]
    if isinstance(leaf, np.ndarray):
        rows = tuple(min(row, budget) for row in rows)
    return math.prod((*rows, *leaf.shape[1:])) * np.dtype(leaf.dtype).itemsize


def _seconds(config: Config) -> float:
    family = problems.family(config.env)
    if family in STEPS_PER_SECOND:
        return config.budget / STEPS_PER_SECOND[family]
    env = envs.named(config.env)
    per_episode = config.agent.gradient_steps * GRADIENT_STEP + env.horizon * ACTING_STEP
    return config.budget * per_episode


def in_bytes(size: int) -> str:
    """In the unit that reads best."""
    count = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
