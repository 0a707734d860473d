"""Checks of observations, rewards and actions, and observations in the form that agents use."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from surveyor.errors import SurveyorError
from surveyor.types import EnvSpec

STOPPED = "so training has stopped; the last checkpoint is kept."


class Reader:
    """Converts an environment's observations into arrays for the networks.

    A `Box` with bounds is scaled to [-1, 1], an image to [0, 1]. Vectors and images of bytes stay
    bytes, or become truth values if they hold 0 and 1 only.
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
            whole = space.dtype == np.uint8 and len(self.shape) in (0, 1, 3)
            if whole and self.shape and np.max(space.high) <= 1:
                self.dtype = "bool"
            else:  # scale bytes by their bound where it is far from 255
                whole = whole and int(np.max(space.high)) > 127
                self.dtype = "uint8" if whole else "float32"
            if not whole:
                self._set_scale(space)
        else:
            raise SurveyorError(
                f"{name} has observations of the kind {type(space).__name__}; surveyor can use "
                "Box, Discrete and MultiBinary. A wrapper such as FlattenObservation may help."
            )

    def specify(self, actions: spaces.Space) -> EnvSpec:
        """Return the spec for an agent; raise `SurveyorError` if actions are not discrete."""
        if not isinstance(actions, spaces.Discrete):
            kind = "continuous actions" if isinstance(actions, spaces.Box) else f"actions {actions}"
            kind += "; surveyor needs one discrete action a step"
            raise SurveyorError(f"{self.name} has {kind}.")
        if math.prod(self.shape) == 0:
            raise SurveyorError(f"{self.name} has empty observations.")
        return EnvSpec(self.states, int(actions.n), 0, self.shape, self.dtype)

    def __call__(self, obs: Any) -> np.ndarray:
        if self.states:
            return read_states(self.name, np.asarray(obs) - self._start, self.states, self._start)
        obs = np.asarray(obs)
        if obs.shape[max(0, obs.ndim - len(self.shape)) :] != self.shape:
            raise wrong_shape(self.name, obs.shape, self.shape)
        check_observations(self.name, obs)
        if self._scale is not None:
            obs = (obs - self._offset) * self._scale
        return obs.astype(self.dtype)

    def _set_scale(self, space: spaces.Box) -> None:
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        span = high - low
        # Bounds wider than this say nothing about the size of observations.
        unknown = ~np.isfinite(span) | (span > 1e4) | (span <= 0)
        low, high = np.where(unknown, -1.0, low), np.where(unknown, 1.0, high)
        self._offset, self._scale = (high + low) / 2, 2 / (high - low)
        if len(self.shape) == 3:
            self._offset = np.where(unknown, 0.0, low)
            self._scale = np.where(unknown, 1.0, 1 / (high - low))


def read_states(name: str, obs: Any, count: int, start: int = 0) -> np.ndarray:
    """Return numbers of states; raise for others. The environment calls the first one `start`."""
    if not np.issubdtype(obs.dtype, np.integer) or np.any((obs < 0) | (obs >= count)):
        bounds = f"from {start} to {start + count - 1}"
        raise SurveyorError(f"Observations of {name} are whole numbers {bounds}.")
    return np.asarray(obs, np.int32)


def wrong_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> SurveyorError:
    """Return the error for an observation of the wrong shape."""
    said = f"of shape {shape} where its observation space says {expected}"
    return SurveyorError(f"{name} gave an observation {said}.")


def check_observations(name: str, obs: np.ndarray) -> None:
    """Raise `SurveyorError` if an observation is not finite."""
    if np.issubdtype(obs.dtype, np.floating) and not np.all(np.isfinite(obs)):
        raise SurveyorError(f"{name} gave an observation that is not finite, {STOPPED}")


def check_rewards(name: str, reward: Any) -> None:
    """Raise `SurveyorError` if a reward is not finite."""
    reward = np.asarray(reward)
    if not np.all(np.isfinite(reward)):
        bad = reward[~np.isfinite(reward)].flat[0]
        raise SurveyorError(f"{name} gave a reward that is not a finite number ({bad}), {STOPPED}")
