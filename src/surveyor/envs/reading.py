"""Checks of observations, rewards and masks, and observations in the form that agents use."""

import functools
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from surveyor.envs.packing import Leaf, Packing
from surveyor.errors import SurveyorError, require
from surveyor.types import EnvSpec

STOPPED = "so training has stopped; the last checkpoint is kept."
MASK = "action_mask"
"""Key of the mask of allowed actions, in an observation or in `info`."""
CODES = 1000
"""Largest number of values that are written as one-hot codes."""


class Part(NamedTuple):
    """One array of an observation: the keys that lead to it, and how it is read."""

    path: tuple[Any, ...]
    leaf: Leaf
    read: Callable[[Any], np.ndarray]
    """Converts it, with any axes of a batch in front; raises for what does not fit."""


class Reader:
    """Converts an environment's observations into the one array that agents take.

    Arrays stay as they are; the network scales them. Choices between a few values become one-hot
    codes, unless they are all there is: then states are numbers. Parts of a `Dict` or `Tuple` are
    laid side by side; text is left out unless it is one of a few sentences.
    """

    def __init__(self, name: str, space: spaces.Space):
        self.name, self.states, self._start = name, 0, 0
        self.mask: tuple[Any, ...] | None = None
        """Keys that lead to the mask in an observation; None if it has none."""
        self.plain = isinstance(space, spaces.Box | spaces.MultiBinary)
        """True if an observation is one array, which stays as it is."""
        self._dropped: list[str] = []
        self._parts = self._find(space, ())
        require(bool(self._parts), f"{name} has no observations that are numbers.")
        self._packing = Packing.of([part.leaf for part in self._parts])
        if len(self._parts) == 1 and isinstance(found := _at(space, self._parts[0].path), Discrete):
            self.states, self._start = int(found.n), int(found.start)
        if self._dropped:
            parts = ", ".join(self._dropped)
            _notice(f"Observations of {name} have text, which is left out: {parts}.")

    def specify(self, actions: spaces.Space, *, masked: bool = False) -> EnvSpec:
        """Return the spec for an agent; raise `SurveyorError` if actions are not discrete."""
        if not isinstance(actions, spaces.Discrete):
            kind = "continuous" if isinstance(actions, spaces.Box) else "several or other"
            said = f"has {kind} actions, {actions}; surveyor needs one discrete action a step"
            raise SurveyorError(f"{self.name} {said}, which a wrapper may offer.")
        masked = masked or self.mask is not None
        if self.states:
            return EnvSpec(self.states, int(actions.n), masked=masked)
        require(math.prod(self._packing.shape) > 0, f"{self.name} has empty observations.")
        return self._packing.specify(int(actions.n), masked)

    def __call__(self, obs: Any) -> np.ndarray:
        if self.states:
            numbers = np.asarray(self._get(obs, self._parts[0].path)) - self._start
            return read_states(self.name, numbers, self.states, self._start)
        arrays = [part.read(self._get(obs, part.path)) for part in self._parts]
        return self._packing(arrays, [part.leaf.shape for part in self._parts], np)

    def read_mask(self, obs: Any, info: Any) -> Any:
        """Return the mask in an observation, or else in its `info`, or None."""
        if self.mask is not None:
            return self._get(obs, self.mask)
        return info.get(MASK) if isinstance(info, dict) else None

    def _get(self, obs: Any, path: tuple[Any, ...]) -> Any:
        try:
            return _at(obs, path)
        except (LookupError, TypeError):
            where = ".".join(map(str, path))
            raise SurveyorError(f"{self.name} gave an observation without '{where}'.") from None

    def _find(self, space: spaces.Space, path: tuple[Any, ...]) -> list[Part]:
        """Return the parts of a space that are numbers."""
        if isinstance(space, spaces.Dict | spaces.Tuple):
            inner = space.items() if isinstance(space, spaces.Dict) else enumerate(space)
            if self.mask is None and isinstance(space, spaces.Dict) and MASK in list(space):
                self.mask = (*path, MASK)
                inner = [(key, each) for key, each in inner if key != MASK]
            return [part for key, each in inner for part in self._find(each, (*path, key))]
        if isinstance(space, spaces.Box):
            leaf = Leaf.of(space.shape, space.dtype, space.low, space.high)
            return [Part(path, leaf, lambda x: self._read_box(x, leaf))]
        if isinstance(space, spaces.MultiBinary):
            leaf = Leaf.of(space.shape, bool)
            return [Part(path, leaf, lambda x: self._read_box(x, leaf))]
        if isinstance(space, spaces.Discrete):
            return [self._coded(path, np.array([space.n]), np.array([space.start]), ())]
        if isinstance(space, spaces.MultiDiscrete):
            counts, start = space.nvec.reshape(-1), space.start.reshape(-1)
            return [self._coded(path, counts, start, space.nvec.shape)]
        if isinstance(space, spaces.Text) or hasattr(space, "mission_func"):
            return self._sentences(space, path)
        raise SurveyorError(
            f"{self.name} has observations of the kind {type(space).__name__}; surveyor can use "
            "Box, Discrete, MultiBinary and MultiDiscrete, and Dict and Tuple of these."
        )

    def _coded(
        self, path: tuple[Any, ...], counts: np.ndarray, start: np.ndarray, shape: tuple[int, ...]
    ) -> Part:
        """Return choices as one-hot codes side by side, or as numbers if they are too many."""
        total, ends = int(np.sum(counts)), np.cumsum(counts)
        if total > CODES:
            flat = Leaf.of((len(counts),), np.float32, start, start + counts - 1)
        else:
            flat = Leaf.of((total,), bool)

        def read(x: Any) -> np.ndarray:
            x = np.asarray(x)
            lead = x.shape[: x.ndim - len(shape)]
            if x.shape[len(lead) :] != shape:
                raise wrong_shape(self.name, x.shape, shape)
            x = x.reshape(*lead, -1)
            if np.any((x < start) | (x >= start + counts)):
                raise SurveyorError(f"{self.name} gave an observation outside of its space.")
            if total > CODES:
                return x.astype(np.float32)
            places = (x - start + ends - counts).astype(np.int64)
            return np.any(places[..., None] == np.arange(total), axis=-2)

        return Part(path, flat, read)

    def _sentences(self, space: Any, path: tuple[Any, ...]) -> list[Part]:
        """Return text as a one-hot code if it is one of a few sentences; else leave it out."""
        known = sentences(space)
        if known is None:
            self._dropped.append(".".join(map(str, path)) or "all of it")
        if known is None or len(known) < 2:
            return []

        def read(x: Any) -> np.ndarray:
            texts = np.asarray(x, dtype=str)
            return texts[..., None] == np.asarray(known)

        return [Part(path, Leaf.of((len(known),), bool), read)]

    def _read_box(self, x: Any, leaf: Leaf) -> np.ndarray:
        x = np.asarray(x)
        if x.shape[max(0, x.ndim - len(leaf.shape)) :] != leaf.shape:
            raise wrong_shape(self.name, x.shape, leaf.shape)
        check_observations(self.name, x)
        return x.astype(leaf.dtype)


Discrete = spaces.Discrete


@functools.cache
def _notice(sentence: str) -> None:
    """Warn once of something that the user should know."""
    warnings.warn(sentence, stacklevel=2)


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def sentences(space: Any) -> list[str] | None:
    """Return the sentences that a space of text has, if it says so and they are few, else None.

    MiniGrid's spaces of missions make a sentence from placeholders with a few words each.
    """
    if not hasattr(space, "mission_func"):
        return None
    words = getattr(space, "ordered_placeholders", None) or ()
    if math.prod(map(len, words)) > CODES:
        return None
    try:
        return sorted({space.mission_func(*each) for each in itertools.product(*words)})
    except Exception:  # sentences of another making, as BabyAI's
        return None


def legal(name: str, mask: Any, actions: int, over: np.ndarray) -> np.ndarray:
    """Return the mask of each environment as truth values.

    A mask that forbids everything where an episode is over, after which nobody acts, allows all.
    """
    try:
        found = np.asarray(mask).astype(bool)
    except (TypeError, ValueError):
        found = np.zeros((), bool)
    if found.shape != (*over.shape, actions):
        shape = np.shape(mask)[over.ndim :]
        said = f"needs one truth value for each of its {actions} actions, not shape {shape}"
        raise SurveyorError(f"The {MASK} of {name} {said}.")
    empty = ~np.any(found, axis=-1)
    found = found | (empty & over)[..., None]
    check_masks(name, found)
    return found


def check_masks(name: str, legal: np.ndarray) -> None:
    """Raise `SurveyorError` if a mask forbids every action."""
    if not np.all(np.any(legal, axis=-1)):
        raise SurveyorError(f"The {MASK} of {name} allows no action, {STOPPED}")


def read_states(name: str, obs: Any, count: int, start: int = 0) -> np.ndarray:
    """Return numbers of states; raise for others. The environment calls the first one `start`."""
    if not np.issubdtype(obs.dtype, np.integer) or np.any((obs < 0) | (obs >= count)):
        bounds = f"from {start} to {start + count - 1}"
        raise SurveyorError(f"Observations of {name} are whole numbers {bounds}.")
    return np.asarray(obs, np.int32)


def wrong_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> SurveyorError:
    """Return the error for an observation of the wrong shape."""
    said = f"of shape {shape} where its observation space says {expected}"
    return SurveyorError(f"{name} gave an observation {said}: all must have the space's shape.")


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
