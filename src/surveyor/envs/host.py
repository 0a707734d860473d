"""Environments that step in Python or C++, several side by side, brought to one form.

Episodes begin with a seed of their own, made from the run's seed, the environment's number and a
count of such beginnings. So a moment of training is known from that count and the actions since:
that is what a checkpoint holds of it, for whatever environment, and restoring it means playing
those actions again.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from surveyor.envs.reading import Reader, check_rewards, specify, wrong_shape
from surveyor.errors import SurveyorError
from surveyor.types import EnvSpec


class HostStep(NamedTuple):
    """What one step of every environment gave."""

    obs: np.ndarray
    """To act on next: of the next episode where one ended."""
    final: np.ndarray
    """What followed the step, before any reset."""
    reward: np.ndarray
    """As learning is to see it."""
    score: np.ndarray
    """As the environment gave it."""
    terminated: np.ndarray
    """Whether nothing follows, as far as learning is concerned."""
    ended: np.ndarray
    """Whether an episode ended, or was cut off."""
    skipped: np.ndarray
    """Whether the environment only began a new episode, whatever the action was."""


class HostEnvs(abc.ABC):
    """Several environments that are stepped together."""

    name: str
    spec: EnvSpec
    count: int
    first_action: int = 0
    """What the environment calls the first of its actions."""
    exact: bool = True
    """Whether `restore` comes to the very moment, or begins new episodes."""

    @abc.abstractmethod
    def begin(self, seed: int) -> np.ndarray:
        """Start the first episode of each; returns their observations."""

    @abc.abstractmethod
    def step(self, actions: np.ndarray) -> HostStep:
        """One step of each; where an episode ends the next one begins."""

    @abc.abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Where the episodes stand, as JSON."""

    @abc.abstractmethod
    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        """Come to where they stood; returns the observations."""

    def read(self, obs: np.ndarray) -> np.ndarray:
        """Observations as the environment gives them, as the agent takes them."""
        return obs

    def picture(self) -> np.ndarray:
        """What the first environment looks like now."""
        raise SurveyorError(f"{self.name} has no pictures to film.")

    def close(self) -> None:  # noqa: B027
        """Let go of what the environments hold."""


class SeededEnvs(HostEnvs):
    """Environments that a seed and the actions since bring to where they are."""

    seed: int
    reseed_after: int = 0
    """Steps after which the next episode begins with a new seed; 0 where every episode does. The
    others begin as the environment likes, which its last seed decides."""

    def begin(self, seed: int) -> np.ndarray:
        self.seed = seed
        self._seedings = [0] * self.count
        self._actions: list[list[int]] = [[] for _ in range(self.count)]
        return self._reset(np.ones(self.count, bool), self._seeds(range(self.count)))

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
            step = step._replace(obs=self._reset(due, self._seeds(np.flatnonzero(due))))
        return step

    def snapshot(self) -> dict[str, Any]:
        return {"seedings": self._seedings, "actions": self._actions}

    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        """By playing the same actions."""
        self.seed = seed
        self._seedings = list(snapshot["seedings"])
        self._actions = [list(actions) for actions in snapshot["actions"]]
        return self._replay()

    @abc.abstractmethod
    def _reset(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """Start an episode in these, with these seeds; returns all observations."""

    @abc.abstractmethod
    def _step(self, actions: np.ndarray) -> HostStep:
        """One step of each; `step` sees to new episodes."""

    @abc.abstractmethod
    def _replay(self) -> np.ndarray:
        """Begin each again with its last seed and play its actions; returns observations."""

    def _seeds(self, which: Any) -> np.ndarray:
        words = [
            np.random.SeedSequence([self.seed, int(e), self._seedings[e]]).generate_state(1)[0]
            for e in which
        ]
        return np.asarray(words, np.int64) & 0x7FFFFFFF


class GymnasiumEnvs(SeededEnvs):
    """Any Gymnasium environment, as many of it as the agent plays."""

    def __init__(self, name: str, make: Callable[[], gymnasium.Env], count: int):
        self.name, self.count = name, count
        self._envs = [_made(name, make) for _ in range(count)]
        if len({id(env) for env in self._envs}) < count:
            raise SurveyorError(
                f"What makes the environment {name} gives the same one every time, and {count} are "
                "played side by side: it has to make a new one, or set envs = 1."
            )
        one = self._envs[0]
        self._reader = Reader(name, one.observation_space)
        self.spec = specify(name, self._reader, one.action_space)
        self.first_action = int(getattr(one.action_space, "start", 0))
        self._obs = np.zeros((count, *self.spec.shape), self.spec.dtype)

    def read(self, obs: np.ndarray) -> np.ndarray:
        return self._reader(obs)

    def picture(self) -> np.ndarray:
        try:
            picture: Any = self._envs[0].render()
        except Exception as error:  # it may be anybody's
            said = str(error) or type(error).__name__
            raise SurveyorError(f"{self.name} cannot be drawn: {said}") from None
        return picture if isinstance(picture, np.ndarray) else super().picture()

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _reset(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        for e, seed in zip(np.flatnonzero(which), seeds, strict=True):
            self._obs[e] = self._read_one(self._call(e, "reset", seed=int(seed))[0])
        return self._obs.copy()

    def _read_one(self, obs: Any) -> np.ndarray:
        found = self._reader(obs)
        if found.shape != self.spec.shape:
            raise wrong_shape(self.name, found.shape, self.spec.shape)
        return found

    def _step(self, actions: np.ndarray) -> HostStep:
        reward = np.zeros(self.count, np.float32)
        terminated, truncated = np.zeros((2, self.count), bool)
        for e, action in enumerate(actions):
            after = self._call(e, "step", int(action) + self.first_action)
            try:
                obs, earned, terminated[e], truncated[e], _ = after
                reward[e] = earned
            except (TypeError, ValueError) as error:
                raise SurveyorError(
                    f"A step of {self.name} does not give what Gymnasium says, an observation, a "
                    f"number as reward, terminated, truncated and info: {error}."
                ) from None
            self._obs[e] = self._read_one(obs)
        check_rewards(self.name, reward)
        obs = self._obs.copy()
        ended = terminated | truncated
        return HostStep(obs, obs, reward, reward, terminated, ended, np.zeros_like(ended))

    def _replay(self) -> np.ndarray:
        self._reset(np.ones(self.count, bool), self._seeds(range(self.count)))
        for e, actions in enumerate(self._actions):
            for action in actions:
                self._obs[e] = self._read_one(self._call(e, "step", action + self.first_action)[0])
        return self._obs.copy()

    def _call(self, e: Any, method: str, *arguments: Any, **named: Any) -> Any:
        try:
            return getattr(self._envs[e], method)(*arguments, **named)
        except Exception as error:
            raise failed(self.name, method, error) from error


def failed(name: str, method: str, error: Exception) -> SurveyorError:
    """What somebody's environment has raised, in a sentence."""
    said = f"{type(error).__name__}: {error}"
    return SurveyorError(f"The environment {name} failed in {method}: {said}")


def _made(name: str, make: Callable[[], Any]) -> gymnasium.Env:
    try:
        env = make()
    except SurveyorError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise SurveyorError(f"The environment {name} could not be made: {said}") from error
    if not isinstance(env, gymnasium.Env):
        raise SurveyorError(
            f"What was to make the environment {name} made {type(env).__name__}, which is no "
            "Gymnasium environment."
        )
    return env


class VectorEnvs(HostEnvs):
    """A Gymnasium vector environment that somebody else made, with its own way of resetting."""

    exact = False

    def __init__(self, name: str, env: VectorEnv):
        self.name, self.count, self._env = name, env.num_envs, env
        self._reader = Reader(name, env.single_observation_space)
        self.spec = specify(name, self._reader, env.single_action_space)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self.first_action = int(getattr(env.single_action_space, "start", 0))
        self._over = np.zeros(self.count, bool)

    def begin(self, seed: int) -> np.ndarray:
        self._over = np.zeros(self.count, bool)
        return self._reader(self._call("reset", seed=seed)[0])

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        try:
            return getattr(self._env, method)(*arguments, **named)
        except Exception as error:
            raise failed(self.name, method, error) from error

    def step(self, actions: np.ndarray) -> HostStep:
        obs, reward, terminated, truncated, info = self._call("step", actions + self.first_action)
        check_rewards(self.name, reward)
        obs, ended, skipped = self._reader(obs), terminated | truncated, self._over
        final = obs
        if np.any(ended) and self._mode == AutoresetMode.SAME_STEP:
            final = obs.copy()
            for e in np.flatnonzero(ended):
                final[e] = self._reader(info["final_obs"][e])
        elif np.any(ended) and self._mode == AutoresetMode.DISABLED:
            obs = self._reader(self._call("reset", options={"reset_mask": ended})[0])
        elif self._mode == AutoresetMode.NEXT_STEP:
            self._over = ended
        reward = np.asarray(reward, np.float32)
        return HostStep(obs, final, reward, reward, terminated, ended | skipped, skipped)

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        """A stranger's environment cannot be brought back to a moment: new episodes begin."""
        return self.begin(seed)

    def read(self, obs: np.ndarray) -> np.ndarray:
        return self._reader(obs)
