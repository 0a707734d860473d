"""Estimates of a run's time, memory and disk space before it starts."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from surveyor.envs.base import Environment
from surveyor.runs.config import Config
from surveyor.runs.replay_log import PARTS
from surveyor.runs.run import Run

PROCESS_BYTES = 600_000_000
"""Memory of Python, JAX and a compiled program."""
GRADIENT_STEP, ACTING_STEP = 70e-6, 0.4e-6
"""Seconds of a gradient step and of an environment step where agents learn by episodes, on one core
without accelerator (docs/results/speed.md)."""


class Estimate(NamedTuple):
    """Rough needs of a run on one core."""

    seconds: float
    memory: int
    """Peak of main memory in bytes."""
    disk: int
    """Largest size of its folder in bytes: the replay once, all else twice while it is replaced."""


def estimates(configs: list[Config]) -> list[Estimate]:
    """Return an estimate for every run, one for all environments of a family that are alike."""
    kinds = [(c.agent, c.family.name if c.family.alike else c.env, c.budget) for c in configs]
    alike = dict(zip(kinds, configs, strict=True))
    known = {kind: estimate(config) for kind, config in alike.items()}
    return [known[kind] for kind in kinds]


def estimate(config: Config) -> Estimate:
    """Estimate time from measured speeds, memory and disk from the arrays of a checkpoint."""
    frozen = Run(config, None, []).runner.frozen_shape()
    state, rows = (
        sum(_size(leaf, config.budget) for leaf in jax.tree.leaves(part))
        for part in (frozen.state, frozen.ring)
    )
    seconds, source = config.budget / config.family.steps_per_second, config.make()
    if isinstance(source, Environment):
        updates = config.agent.schedule.updates
        seconds = config.budget * (updates * GRADIENT_STEP + source.horizon * ACTING_STEP)
    disk = 2 * state + round(rows * (1 + 1 / PARTS)) + 1_000_000
    return Estimate(seconds, PROCESS_BYTES + state + rows, disk)


def _size(leaf: Any, budget: int) -> int:
    """Return the bytes of an array; of a NumPy array, which is a replay, the part to be filled."""
    if isinstance(leaf, np.ndarray):
        return np.atleast_1d(leaf)[:budget].nbytes
    return math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize


def in_bytes(size: int) -> str:
    """Return a size in bytes as text in a readable unit."""
    count = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
