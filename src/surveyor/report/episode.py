"""One greedy episode with the agent's beliefs at every step."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from surveyor.report.packing import image_of, packed, picture
from surveyor.runs import film
from surveyor.runs.folder import Arrays
from surveyor.runs.run import Run
from surveyor.training import beliefs
from surveyor.training.runner import EnoughError

MAX_STEPS = 3_000
"""Steps after which an episode is cut."""
FRAMES = 240
"""Largest number of frames shown at regular intervals."""
MOMENTS = 6
"""Additional frames where posterior samples disagree most."""
APART = 0.03
"""Smallest distance between such frames, as a share of the episode."""
BATCH = 32
"""Observations per call of the agent."""


def play(run: Run, seed: int = 0) -> dict[str, Any]:
    """Return frames of an episode with mean and standard deviation of each action's Q value."""
    seen: list[np.ndarray] = []
    taken: list[int] = []
    pictures: list[str] = []

    def see(obs: np.ndarray, paint: Callable[[], np.ndarray], action: int) -> None:
        if len(seen) == MAX_STEPS:
            raise EnoughError
        seen.append(np.array(obs))
        taken.append(action)
        try:
            pictures.append(picture(paint()))
        except Exception:  # it draws nothing: show what the agent sees
            pictures.append(picture(image_of(obs)))

    film.watch(run, seed, see)
    found = _beliefs(run, np.stack(seen))
    dissent = 1 - np.max(found["probability"], axis=1)
    moments = _moments(dissent)
    shown = sorted({*range(0, len(seen), -(-len(seen) // FRAMES)), *moments})
    return {
        "steps": shown,
        "length": len(seen),
        "cut": len(seen) == MAX_STEPS,
        "frames": [pictures[i] for i in shown],
        "taken": [taken[i] for i in shown],
        **{name: packed(values[shown]) for name, values in found.items()},
        "dissent": packed(dissent),
        "moments": moments,
        "actions": found["mean"].shape[1],
    }


def _beliefs(run: Run, obs: np.ndarray) -> Arrays:
    """Return the beliefs at all observations, asked for in batches of one size."""
    parts = []
    for begin in range(0, len(obs), BATCH):
        rows = np.minimum(np.arange(begin, begin + BATCH), len(obs) - 1)
        key = jax.random.key(0)  # equal samples for every frame
        parts.append(beliefs.about(run.agent, run.state, obs[rows], key))
    return {name: np.concatenate([part[name] for part in parts])[: len(obs)] for name in parts[0]}


def _moments(dissent: np.ndarray) -> list[int]:
    """Return the steps of the greatest dissent that are far enough apart."""
    chosen: list[int] = []
    for i in np.argsort(-dissent, kind="stable"):
        if len(chosen) == MOMENTS or dissent[i] == 0:
            break
        if all(abs(int(i) - other) >= APART * len(dissent) for other in chosen):
            chosen.append(int(i))
    return chosen
