"""Stacks of frames as observations, for any environment that steps in Python."""

import base64
import zlib
from typing import Any

import numpy as np

from surveyor.envs.host import HostEnvs, HostStep
from surveyor.errors import SurveyorError, require
from surveyor.types import stacked


class StackedEnvs(HostEnvs):
    """Environments whose observations are the last frames of another's.

    Before an episode's first frame there are zeros, as the replay has them.
    """

    def __init__(self, inner: HostEnvs, frames: int):
        self.inner, spec = inner, inner.spec
        require(not spec.tabular, f"{inner.name} has numbered states, which cannot be stacked.")
        require(not spec.stack, f"{inner.name} stacks {spec.stack} frames by itself.")
        self.name, self.count, self.first_action = inner.name, inner.count, inner.first_action
        self.exact, self.resets_at_once = inner.exact, inner.resets_at_once
        self.spec = stacked(spec, frames)
        self._obs = np.zeros((self.count, *self.spec.shape), spec.dtype)

    @property
    def legal(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Actions that each environment allows now."""
        return self.inner.legal

    def read(self, observation: Any) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return stacks of the environment's frames as the agent takes them."""
        found, shape = self.inner.read(observation), self.spec.shape
        if found.shape[max(0, found.ndim - len(shape)) :] != shape:
            said = f"are stacks of {shape[0]} frames, so of shape {shape}, not {found.shape}"
            raise SurveyorError(f"Observations of {self.name} {said}.")
        return found

    def read_mask(self, obs: Any, given: Any = None) -> np.ndarray:
        """Return the actions that the newest frames allow; `given` has no axis of frames."""
        found = self.inner.read_mask(obs, given)
        return found if given is not None else found[..., -1, :]

    def begin(self, seed: int) -> np.ndarray:
        self._start(np.ones(self.count, bool), self.inner.begin(seed))
        self.spec = stacked(self.inner.spec, self.spec.stack)
        return self._obs.copy()

    def step(self, actions: np.ndarray) -> HostStep:
        step = self.inner.step(actions)
        self._obs[:, :-1] = self._obs[:, 1:].copy()
        self._obs[:, -1] = step.final
        final = self._obs.copy()
        self._start(step.ended if self.resets_at_once else step.skipped, step.obs)
        return step._replace(obs=self._obs.copy(), final=final)

    def snapshot(self) -> dict[str, Any]:
        frames = base64.b64encode(zlib.compress(self._obs.tobytes(), 1)).decode()
        return {"inner": self.inner.snapshot(), "frames": frames}

    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        newest = self.inner.restore(seed, snapshot["inner"])
        if not self.exact:
            self._start(np.ones(self.count, bool), newest)
            return self._obs.copy()
        frames = np.frombuffer(zlib.decompress(base64.b64decode(snapshot["frames"])), np.uint8)
        self._obs = frames.view(self._obs.dtype).reshape(self._obs.shape).copy()
        return self._obs.copy()

    def picture(self) -> np.ndarray:
        return self.inner.picture()

    def close(self) -> None:
        self.inner.close()

    def _start(self, which: np.ndarray, frames: np.ndarray) -> None:
        self._obs[which] = 0
        self._obs[which, -1] = frames[which]
