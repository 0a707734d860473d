"""One greedy episode, and what the agent believed at every step of it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from surveyor.report.packing import image_of, packed, picture
from surveyor.runs import film
from surveyor.runs.folder import Arrays
from surveyor.runs.run import Run
from surveyor.training import beliefs

LONGEST = 3_000
"""Steps of an episode that are looked at."""
FRAMES = 240
"""Frames that are shown, evenly over them;"""
MOMENTS = 6
"""and so many more where posterior samples disagree most."""
APART = 0.03
"""How far such moments are apart, as a share of the episode."""
BATCH = 32


def watched(run: Run, seed: int = 0) -> dict[str, Any]:
    """Frames with the Q values of each action and their standard deviations."""
    seen: list[np.ndarray] = []
    taken: list[int] = []
    pictures: list[str] = []

    def see(obs: np.ndarray, paint: Callable[[], np.ndarray], action: int) -> None:
        if len(seen) == LONGEST:
            raise film.EnoughError
        seen.append(np.array(obs))
        taken.append(action)
        try:
            pictures.append(picture(paint()))
        except Exception:  # it draws nothing: then what the agent sees
            pictures.append(picture(image_of(obs)))

    film.watch(run, seed, see)
    found = _asked(run, np.stack(seen))
    dissent = 1 - np.max(found["probability"], axis=1)
    moments = _moments(dissent)
    step = max(1, -(-len(seen) // FRAMES))
    shown = sorted({*range(0, len(seen), step), *moments})
    return {
        "steps": shown,
        "length": len(seen),
        "cut": len(seen) == LONGEST,
        "frames": [pictures[i] for i in shown],
        "taken": [taken[i] for i in shown],
        **{name: packed(values[shown]) for name, values in found.items()},
        "dissent": packed(dissent),
        "moments": moments,
        "actions": found["mean"].shape[1],
    }


def _asked(run: Run, obs: np.ndarray) -> Arrays:
    """In batches, the last one filled up."""
    parts = []
    for begin in range(0, len(obs), BATCH):
        rows = np.minimum(np.arange(begin, begin + BATCH), len(obs) - 1)
        key = jax.random.key(0)  # the same samples for every frame
        parts.append(beliefs.ask(run.agent, run.state, jnp.asarray(obs[rows]), key))
    names = parts[0]
    return {name: np.concatenate([part[name] for part in parts])[: len(obs)] for name in names}


def _moments(dissent: np.ndarray) -> list[int]:
    """Those of the greatest dissent, some way apart."""
    chosen: list[int] = []
    for i in np.argsort(-dissent, kind="stable"):
        if len(chosen) == MOMENTS or dissent[i] == 0:
            break
        if all(abs(int(i) - other) >= APART * len(dissent) for other in chosen):
            chosen.append(int(i))
    return chosen
