"""Gymnasium's vector environments."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from surveyor.envs.host import HostEnvs, HostStep
from surveyor.envs.reading import MASK, check_rewards


class VectorEnvs(HostEnvs):
    """A Gymnasium vector environment, which resets in its own way."""

    exact = False

    def __init__(self, name: str, env: VectorEnv):
        self.name, self.count, self._env = name, env.num_envs, env
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self.resets_at_once = self._mode != AutoresetMode.NEXT_STEP
        self._set_spaces(env.single_observation_space, env.single_action_space)

    def begin(self, seed: int) -> np.ndarray:
        self._over = np.zeros(self.count, bool)
        return self._began(*self._call(self._env, "reset", seed=seed))

    def step(self, actions: np.ndarray) -> HostStep:
        after = self._call(self._env, "step", actions + self.first_action)
        raw, reward, terminated, truncated, info = after
        check_rewards(self.name, reward)
        obs, ended, skipped = self.read(raw), terminated | truncated, self._over
        final, final_legal = obs, self._masks(raw, info, ended)
        if np.any(ended) and self._mode == AutoresetMode.SAME_STEP:
            final, before = obs.copy(), info.get("final_info", {})
            for e in np.flatnonzero(ended):
                last = info["final_obs"][e]
                final[e] = self.read(last)
                if final_legal is not None:
                    one = {MASK: before[MASK][e]} if MASK in before else {}
                    final_legal[e] = self._read_mask(last, one, True)
            self.legal = self._masks(raw, info)
        elif np.any(ended) and self._mode == AutoresetMode.DISABLED:
            options = {"reset_mask": ended}
            raw, info = self._call(self._env, "reset", options=options)
            obs = self.read(raw)
            if final_legal is not None:  # `info` has the masks of new episodes only
                began = self._read_mask(raw, info, ~ended)
                self.legal = np.where(ended[:, None], began, final_legal)
        else:
            self._over = ended if self._mode == AutoresetMode.NEXT_STEP else self._over
            self.legal = final_legal
        reward = np.asarray(reward, np.float32)
        ends = (terminated, ended | skipped, skipped, final_legal)
        return HostStep(obs, final, reward, reward, *ends)

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, seed: int, snapshot: dict[str, Any]) -> np.ndarray:
        return self.begin(seed)  # a vector environment cannot return to a state

    def _began(self, obs: Any, info: Any) -> np.ndarray:
        self._note_mask(info)
        self.legal = self._masks(obs, info)
        return self.read(obs)

    def _masks(self, obs: Any, info: Any, over: Any = None) -> np.ndarray | None:
        over = np.zeros(self.count, bool) if over is None else over
        return self._read_mask(obs, info, over) if self.spec.masked else None
