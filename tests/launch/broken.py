"""An environment that fails, for sweeps in other processes: `tests.launch.broken:Broken-v0`."""

import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    """Raises at its tenth step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 10:
            raise RuntimeError("the motor is hot")
        return np.zeros(2, np.float32), 0.0, False, False, {}


gymnasium.register("Broken-v0", Broken)
