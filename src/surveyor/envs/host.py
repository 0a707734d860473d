"""Adapters for environments that step in Python or C++, some copies of one side by side.

Each episode starts with its own seed, derived from the run's seed, the environment's number and a
count of such seeds. That count and the actions since determine the environment's state, so a
checkpoint holds these two for any environment, and restoring it replays the actions.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from surveyor.envs.reading import Reader, check_rewards, wrong_shape
from surveyor.errors import SurveyorError
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


class HostEnvs(abc.ABC):
    """Environments that are stepped together."""

    name: str
    """Name in messages."""
    spec: EnvSpec
    """Spaces of one environment."""
    count: int
    read: Callable[[Any], np.ndarray]
    """Converts the environment's observations into those that the agent takes."""
    first_action: int = 0
    """The environment's own number of its first action."""
    exact: bool = True
    """True if `restore` reaches the same state, False if it starts new episodes."""

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
        self.read = reader = Reader(self.name, observations)
        self.spec = reader.specify(actions)
        self.first_action = int(getattr(actions, "start", 0))

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
        for e, action in enumerate(actions):
            self._actions[e].append(int(action))
        step = self._step(actions)
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
            self._keep(e, self._call(self._envs[e], "reset", seed=int(seed))[0])
        return self._obs.copy()

    def _keep(self, e: Any, obs: Any) -> None:
        found = self.read(obs)
        if found.shape != self.spec.shape:
            raise wrong_shape(self.name, found.shape, self.spec.shape)
        self._obs[e] = found

    def _step(self, actions: np.ndarray) -> HostStep:
        reward = np.zeros(self.count, np.float32)
        terminated, truncated = np.zeros((2, self.count), bool)
        for e, action in enumerate(actions):
            after = self._call(self._envs[e], "step", int(action) + self.first_action)
            try:
                obs, earned, terminated[e], truncated[e], _ = after
                reward[e] = earned
            except (TypeError, ValueError) as error:
                raise SurveyorError(
                    f"A step of {self.name} does not return what Gymnasium demands, an "
                    f"observation, a number as reward, terminated, truncated and info: {error}."
                ) from None
            self._keep(e, obs)
        check_rewards(self.name, reward)
        obs = self._obs.copy()
        ended = terminated | truncated
        return HostStep(obs, obs, reward, reward, terminated, ended, np.zeros_like(ended))

    def _replay(self) -> np.ndarray:
        self._reset(np.ones(self.count, bool))
        for e, actions in enumerate(self._actions):
            for action in actions:
                self._keep(e, self._call(self._envs[e], "step", action + self.first_action)[0])
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


class VectorEnvs(HostEnvs):
    """A Gymnasium vector environment, which resets in its own way."""

    exact = False

    def __init__(self, name: str, env: VectorEnv):
        self.name, self.count, self._env = name, env.num_envs, env
        self._set_spaces(env.single_observation_space, env.single_action_space)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))

    def begin(self, seed: int) -> np.ndarray:
        self._over = np.zeros(self.count, bool)
        return self.read(self._call(self._env, "reset", seed=seed)[0])

    def step(self, actions: np.ndarray) -> HostStep:
        after = self._call(self._env, "step", actions + self.first_action)
        obs, reward, terminated, truncated, info = after
        check_rewards(self.name, reward)
        obs, ended, skipped = self.read(obs), terminated | truncated, self._over
        final = obs
        if np.any(ended) and self._mode == AutoresetMode.SAME_STEP:
            final = obs.copy()
            for e in np.flatnonzero(ended):
                final[e] = self.read(info["final_obs"][e])
        elif np.any(ended) and self._mode == AutoresetMode.DISABLED:
            obs = self.read(self._call(self._env, "reset", options={"reset_mask": ended})[0])
        elif self._mode == AutoresetMode.NEXT_STEP:
            self._over = ended
        reward = np.asarray(reward, np.float32)
        return HostStep(obs, final, reward, reward, terminated, ended | skipped, skipped)

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        return self.begin(seed)  # a vector environment cannot return to a state
