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

    A `Box` with bounds is scaled to [-1, 1], an image to [0, 1]; the bytes of vectors and images
    stay bytes, of which 0 and 1 are truth values.
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
            small = np.issubdtype(space.dtype, np.unsignedinteger) and space.dtype.itemsize == 1
            whole = small and len(self.shape) in (0, 1, 3)
            if whole and self.shape and np.max(space.high) <= 1:
                self.dtype = "bool"
            else:  # bytes that do not go up to 255 are scaled by what they go up to
                whole = whole and int(np.max(space.high)) > 127
                self.dtype = "uint8" if whole else "float32"
            if not whole:
                self._set_scale(space)
        else:
            raise SurveyorError(
                f"{name} has observations of the kind {type(space).__name__}; surveyor can use "
                "Box, Discrete and MultiBinary. A wrapper such as FlattenObservation may help."
            )

    def __call__(self, obs: Any) -> np.ndarray:
        if self.states:
            return self._states(np.asarray(obs))
        obs = np.asarray(obs)
        if obs.shape[max(0, obs.ndim - len(self.shape)) :] != self.shape:
            raise wrong_shape(self.name, obs.shape, self.shape)
        check_observations(self.name, obs)
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
        span = high - low
        unknown = ~np.isfinite(span) | (span > LARGEST_SCALED) | (span <= 0)
        low, high = np.where(unknown, -1.0, low), np.where(unknown, 1.0, high)
        self._offset, self._scale = (high + low) / 2, 2 / (high - low)
        if len(self.shape) == 3:
            self._offset = np.where(unknown, 0.0, low)
            self._scale = np.where(unknown, 1.0, 1 / (high - low))


def specify(name: str, reader: Reader, actions: spaces.Space) -> EnvSpec:
    """What an agent needs to know; an error for actions that are not discrete."""
    if not isinstance(actions, spaces.Discrete):
        kind = "continuous actions" if isinstance(actions, spaces.Box) else f"actions {actions}"
        raise SurveyorError(f"{name} has {kind}; surveyor needs one discrete action a step.")
    if math.prod(reader.shape) == 0:
        raise SurveyorError(f"{name} has empty observations.")
    return EnvSpec(reader.states, int(actions.n), 0, reader.shape, reader.dtype)


def wrong_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> SurveyorError:
    """The error."""
    return SurveyorError(
        f"{name} gave an observation of shape {shape} where its observation space says {expected}."
    )


def check_observations(name: str, obs: np.ndarray) -> None:
    """Stop where the network would be poisoned."""
    if np.issubdtype(obs.dtype, np.floating) and not np.all(np.isfinite(obs)):
        raise SurveyorError(
            f"{name} gave an observation that is not finite; training has stopped, and what was "
            "learnt up to the last checkpoint is kept."
        )


def check_rewards(name: str, reward: Any) -> None:
    """Stop where learning would be poisoned."""
    reward = np.asarray(reward)
    if not np.all(np.isfinite(reward)):
        bad = reward[~np.isfinite(reward)].flat[0]
        raise SurveyorError(
            f"{name} gave a reward that is not a finite number ({bad}); training has stopped, "
            "and what was learnt up to the last checkpoint is kept."
        )
