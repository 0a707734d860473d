"""Adapters for environments that step in Python or C++, some copies of one side by side.

Each episode starts with its own seed, derived from the run's seed, the environment's number and a
count of such seeds. That count and the actions since determine the environment's state, so a
checkpoint holds these two for any environment, and restoring it replays the actions.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from surveyor.envs.reading import (
    MASK,
    Reader,
    check_observations,
    check_rewards,
    legal,
    wrong_shape,
)
from surveyor.errors import SurveyorError, require
from surveyor.types import EnvSpec


class HostStep(NamedTuple):
    """Result of one step of every environment."""

    obs: np.ndarray
    """Observations to act on next: of the next episode where one ended."""
    final: np.ndarray
    """Observations after the step, before any reset."""
    reward: np.ndarray
    """Rewards to learn from."""
    score: np.ndarray
    """Rewards as the environment gave them."""
    terminated: np.ndarray
    """True where learning must not bootstrap from what follows."""
    ended: np.ndarray
    """True where an episode ended or was truncated."""
    skipped: np.ndarray
    """True where the environment ignored the action and started a new episode."""
    final_legal: np.ndarray | None = None
    """Actions that are allowed after the step, before any reset; None where all always are."""


class HostEnvs(abc.ABC):
    """Environments that are stepped together."""

    name: str
    """Name in messages."""
    spec: EnvSpec
    """Spaces of one environment; whether it has a mask is known once it has begun."""
    count: int
    read: Callable[[Any], np.ndarray]
    """Converts the environment's observations into those that the agent takes."""
    first_action: int = 0
    """The environment's own number of its first action."""
    exact: bool = True
    """True if `restore` reaches the same state, False if it starts new episodes."""
    resets_at_once: bool = True
    """True if the step that ends an episode starts the next, False if the one after it does."""
    legal: np.ndarray | None = None
    """Actions that each environment allows now; None where all always are allowed."""

    @abc.abstractmethod
    def begin(self, seed: int) -> np.ndarray:
        """Start the first episode of each; return the observations."""

    @abc.abstractmethod
    def step(self, actions: np.ndarray) -> HostStep:
        """Take one step in each; where an episode ends, start the next one."""

    @abc.abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state of the episodes as JSON."""

    @abc.abstractmethod
    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        """Restore the state of a snapshot; return the observations."""

    def picture(self) -> np.ndarray:
        """Return a picture of the first environment."""
        raise SurveyorError(f"{self.name} has no pictures to film.")

    def close(self) -> None:  # noqa: B027
        """Release what the environments hold."""

    def _set_spaces(self, observations: gymnasium.Space, actions: gymnasium.Space) -> None:
        """Set the attributes that follow from the spaces of one environment."""
        self.read = self._reader = Reader(self.name, observations)
        self.spec = self._reader.specify(actions)
        self.first_action = int(getattr(actions, "start", 0))

    def _note_mask(self, info: Any) -> None:
        """Set the attributes that follow from the `info` of a first reset."""
        masked = self.spec.masked or (isinstance(info, dict) and MASK in info)
        if masked and self.legal is None:
            self.spec = dataclasses.replace(self.spec, masked=True)
            self.legal = np.ones((self.count, self.spec.num_actions), bool)

    def read_mask(self, obs: Any, given: Any = None) -> np.ndarray:
        """Return the actions that observations allow; `given` is the mask in `info`, if any."""
        mask = self._reader.read_mask(obs, {MASK: given})
        require(mask is not None, f"{self.name} has a mask in `info`: give it as action_masks.")
        require(bool(np.all(np.any(mask, axis=-1))), "The action_mask allows no action.")
        return self._read_mask(obs, {MASK: given}, np.zeros(np.shape(mask)[:-1], bool))

    def _read_mask(self, obs: Any, info: Any, over: Any) -> np.ndarray:
        """Return the mask that comes with an observation; all True where an episode is over."""
        mask = self._reader.read_mask(obs, info)
        if mask is None:
            said = "gave no action_mask, though there was one at its first reset"
            raise SurveyorError(f"{self.name} {said}: put it into every `info`.")
        return legal(self.name, mask, self.spec.num_actions, np.asarray(over))

    def _call(self, env: Any, method: str, *arguments: Any, **named: Any) -> Any:
        try:
            return getattr(env, method)(*arguments, **named)
        except Exception as error:  # a user's environment may raise anything
            said = f"failed in {method}: {type(error).__name__}: {error}"
            raise SurveyorError(f"The environment {self.name} {said}") from error


class HostMaker(NamedTuple):
    """Makes the environments that a host runner plays."""

    make: Callable[[int], HostEnvs]
    """Return as many environments as asked for, for training."""
    again: Callable[[int], HostEnvs] | None = None
    """Return about as many as asked for, for an evaluation beside training; `make` if None."""


class SeededEnvs(HostEnvs):
    """Environments whose state follows from a seed and the actions since."""

    seed: int
    reseed_after: int = 0
    """Steps after which the next episode starts with a new seed; 0 to seed every episode. Other
    episodes start as the last seed decides."""

    def begin(self, seed: int) -> np.ndarray:
        return self.restore(seed, {"seedings": [0] * self.count, "actions": [[]] * self.count})

    def step(self, actions: np.ndarray) -> HostStep:
        for taken, action in zip(self._actions, actions.tolist(), strict=True):
            taken.append(action)
        step = self._step(actions)
        if not step.ended.any():
            return step
        played = np.asarray([len(actions) for actions in self._actions])
        due = step.ended & (played >= self.reseed_after)
        if np.any(due):
            for e in np.flatnonzero(due):
                self._seedings[e] += 1
                self._actions[e] = []
            step = step._replace(obs=self._reset(due))
        return step

    def snapshot(self) -> dict[str, Any]:
        return {"seedings": self._seedings, "actions": self._actions}

    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        self.seed, self._seedings = seed, list(snapshot["seedings"])
        self._actions: list[list[int]] = [list(actions) for actions in snapshot["actions"]]
        return self._replay()

    @abc.abstractmethod
    def _reset(self, which: np.ndarray) -> np.ndarray:
        """Start an episode where `which` is True, with its seed; return all observations."""

    @abc.abstractmethod
    def _step(self, actions: np.ndarray) -> HostStep:
        """Take one step in each; `step` starts new episodes."""

    @abc.abstractmethod
    def _replay(self) -> np.ndarray:
        """Restart each with its last seed and play its actions; return the observations."""

    def _seeds(self, which: np.ndarray) -> np.ndarray:
        entropy = [[self.seed, int(e), self._seedings[e]] for e in np.flatnonzero(which)]
        words = [np.random.SeedSequence(each).generate_state(1)[0] for each in entropy]
        return np.asarray(words, np.int64) & 0x7FFFFFFF


class GymnasiumEnvs(SeededEnvs):
    """Copies of a Gymnasium environment, as many as the agent plays."""

    def __init__(self, name: str, make: Callable[[], Any], count: int):
        self.name, self.count = name, count
        self._envs = [_made(name, make) for _ in range(count)]
        if len({id(env) for env in self._envs}) < count:
            raise SurveyorError(
                f"The function that makes {name} returns the same environment every time, and "
                f"{count} are played side by side: return a new one, or set envs = 1."
            )
        self._set_spaces(self._envs[0].observation_space, self._envs[0].action_space)
        self._obs = np.zeros((count, *self.spec.shape), self.spec.dtype)

    def picture(self) -> np.ndarray:
        try:
            picture: Any = self._envs[0].render()
        except Exception as error:  # a user's environment may raise anything
            said = str(error) or type(error).__name__
            raise SurveyorError(f"{self.name} cannot be drawn: {said}") from None
        return picture if isinstance(picture, np.ndarray) else super().picture()

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _reset(self, which: np.ndarray) -> np.ndarray:
        for e, seed in zip(np.flatnonzero(which), self._seeds(which), strict=True):
            obs, info = self._call(self._envs[e], "reset", seed=int(seed))
            self._note_mask(info)
            self._keep(e, obs, info)
        return self._checked()

    def _checked(self) -> np.ndarray:
        """Return a copy of all observations, which are finite."""
        check_observations(self.name, self._obs)
        return self._obs.copy()

    def _keep(self, e: Any, obs: Any, info: Any, over: bool = False) -> None:
        # A plain array is checked together with those of the other environments.
        found = np.asarray(obs) if self._reader.plain else self.read(obs)
        if found.shape != self._obs.shape[1:]:
            raise wrong_shape(self.name, found.shape, self.spec.shape)
        self._obs[e] = found
        if self.legal is not None:
            self.legal[e] = self._read_mask(obs, info, over)
        elif MASK in info:
            said = "gave an action_mask after a step, but none at its first reset"
            raise SurveyorError(f"{self.name} {said}: put it into the `info` of every reset too.")

    def _step(self, actions: np.ndarray) -> HostStep:
        rewards, terminations, ends = [], [], []  # lists: an item of an array takes longer to set
        for e, action in enumerate(actions.tolist()):
            after = self._call(self._envs[e], "step", action + self.first_action)
            try:
                obs, reward, terminated, truncated, info = after
                rewards.append(float(reward))
                terminations.append(bool(terminated))
                ends.append(terminations[-1] or bool(truncated))
            except (TypeError, ValueError) as error:
                raise SurveyorError(
                    f"A step of {self.name} does not return what Gymnasium demands, an "
                    f"observation, a number as reward, terminated, truncated and info: {error}."
                ) from None
            self._keep(e, obs, info, ends[-1])
        with np.errstate(over="ignore"):  # a reward beyond float32 is infinite, and is said below
            earned = np.array(rewards, np.float32)
        check_rewards(self.name, earned)
        obs, none = self._checked(), np.zeros(self.count, bool)
        final_legal = None if self.legal is None else self.legal.copy()
        over = (np.array(terminations), np.array(ends), none, final_legal)
        return HostStep(obs, obs, earned, earned, *over)

    def _replay(self) -> np.ndarray:
        self._reset(np.ones(self.count, bool))
        for e, actions in enumerate(self._actions):
            for action in actions:
                after = self._call(self._envs[e], "step", action + self.first_action)
                self._keep(e, after[0], after[4], bool(after[2] or after[3]))
        return self._obs.copy()


def _made(name: str, make: Callable[[], Any]) -> gymnasium.Env:
    try:
        env = make()
    except SurveyorError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise SurveyorError(f"The environment {name} could not be made: {said}") from error
    if not isinstance(env, gymnasium.Env):
        said = f"returned {type(env).__name__}, which is not a Gymnasium environment"
        raise SurveyorError(f"The function that makes {name} {said}.")
    return env
