"""What an environment gives and takes, checked and brought to the form that agents use."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from surveyor.errors import SurveyorError
from surveyor.types import EnvSpec

LARGEST_SCALED = 1e4
"""Bounds wider than this say nothing about how large observations are."""


class Reader:
    """Turns an environment's observations into arrays for the networks.

    A `Box` of floats with bounds is scaled to [-1, 1]; bytes stay bytes.
    """

    def __init__(self, name: str, space: spaces.Space):
        self.name, self.space = name, space
        self.states, self._offset, self._scale = 0, None, None
        if isinstance(space, spaces.Discrete):
            self.states, self.shape, self.dtype = int(space.n), (), "int32"
            self._start = int(space.start)
        elif isinstance(space, spaces.MultiBinary):
            self.shape, self.dtype = space.shape, "bool"
        elif isinstance(space, spaces.Box):
            self.shape = space.shape
            whole = np.issubdtype(space.dtype, np.unsignedinteger) and space.dtype.itemsize == 1
            self.dtype = "uint8" if whole else "float32"
            if not whole and len(self.shape) < 3:
                self._set_scale(space)
        else:
            raise SurveyorError(
                f"{name} has observations of the kind {type(space).__name__}; surveyor can use "
                "Box, Discrete and MultiBinary. A wrapper such as FlattenObservation may help."
            )
        if len(self.shape) not in (0, 1, 3) and self.dtype == "uint8":
            self.dtype = "float32"

    def __call__(self, obs: Any) -> np.ndarray:
        if self.states:
            return self._states(np.asarray(obs))
        obs = np.asarray(obs)
        if obs.shape[max(0, obs.ndim - len(self.shape)) :] != self.shape:
            raise SurveyorError(
                f"{self.name} gave an observation of shape {obs.shape} where its observation space "
                f"says {self.shape}."
            )
        if self._scale is not None:
            obs = (obs - self._offset) * self._scale
        return obs.astype(self.dtype)

    def _states(self, obs: np.ndarray) -> np.ndarray:
        obs = obs - self._start
        if not np.issubdtype(obs.dtype, np.integer) or np.any((obs < 0) | (obs >= self.states)):
            raise SurveyorError(
                f"Observations of {self.name} are whole numbers from {self._start} to "
                f"{self._start + self.states - 1}."
            )
        return np.asarray(obs, np.int32)

    def _set_scale(self, space: spaces.Box) -> None:
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        wide = ~(np.isfinite(low) & np.isfinite(high))
        low, high = np.where(wide, -1.0, low), np.where(wide, 1.0, high)
        wide = (high - low > LARGEST_SCALED) | (high <= low)
        low, high = np.where(wide, -1.0, low), np.where(wide, 1.0, high)
        self._offset, self._scale = (high + low) / 2, 2 / (high - low)


def specify(name: str, reader: Reader, actions: spaces.Space) -> EnvSpec:
    """What an agent needs to know; an error for actions that are not discrete."""
    if not isinstance(actions, spaces.Discrete):
        kind = "continuous actions" if isinstance(actions, spaces.Box) else f"actions {actions}"
        raise SurveyorError(f"{name} has {kind}; surveyor needs one discrete action a step.")
    if math.prod(reader.shape) == 0:
        raise SurveyorError(f"{name} has empty observations.")
    return EnvSpec(reader.states, int(actions.n), 0, reader.shape, reader.dtype)


def check_rewards(name: str, reward: Any) -> None:
    """Stop where learning would be poisoned."""
    if not np.all(np.isfinite(reward)):
        raise SurveyorError(
            f"{name} gave a reward that is not a finite number ({reward}); training has stopped, "
            "and what was learnt up to the last checkpoint is kept."
        )
