"""An environment whose every step is known, and a small agent for it."""

import dataclasses

import gymnasium
import numpy as np
from gymnasium import spaces

import surveyor as sv

QUICK = dataclasses.replace(
    sv.SUPlus.preset("classic"), hidden=16, ensemble=4, warmup=40, envs=2,
    train_every=2, replay_capacity=400, n_step=1,
)  # fmt: skip


class Scripted(gymnasium.Env):
    """Counts its steps: the observation is (episode, step), the reward the step. Episodes end after
    three steps and five in turn: the first by termination, the second by truncation."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def __init__(self, fails_at=None, reward=None, sees=0.0):
        self.episode, self.fails_at, self.reward, self.sees = -1, fails_at, reward, sees
        self.total = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.step_number = 0
        return self._obs(), {}

    def step(self, action):
        self.step_number += 1
        self.total += 1
        if self.total == self.fails_at:
            raise ValueError("the cable is out")
        short = self.episode % 2 == 0
        reward = self.step_number if self.reward is None else self.reward
        terminated = short and self.step_number == 3
        truncated = not short and self.step_number == 5
        return self._obs(), float(reward), terminated, truncated, {}

    def _obs(self):
        return np.array([self.episode, self.step_number], np.float32) + self.sees
