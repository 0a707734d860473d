"""The paper's problems behind Gymnasium's interface; importing this module registers their ids.

    import gymnasium
    env = gymnasium.make("surveyor.envs.gymnasium:surveyor/Tree-v0", size=100)

Gymnasium imports the module before the colon, which needs no JAX; making an environment does.
"""

from typing import Any

import gymnasium
import numpy as np

from surveyor.envs.paper_problems import FAMILIES


class GymnasiumEnv(gymnasium.Env[np.int64, int | np.integer]):
    """A functional environment that is stepped from Python.

    `reset(seed=…)` changes to that seed's action mapping, a plain `reset()` keeps the present one.

    **Arguments:**

    - `family`: Tree, TiedTree or Chain.
    - `size`: the number L of steps to the goal.
    - `seed`: seed of the hidden action mapping.
    """

    def __init__(self, family: str, size: int, seed: int = 0):
        import jax

        from surveyor.envs.base import make

        self._env, self._params = make(f"{family}-{size}", seed)
        self._step = jax.jit(self._env.step_env)
        self._key = jax.random.key(0)  # unused: the dynamics are deterministic
        self.observation_space = gymnasium.spaces.Discrete(self._env.spec.num_states)
        self.action_space = gymnasium.spaces.Discrete(self._env.spec.num_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if seed is not None:
            self._params = self._env.params(seed)
        obs, self._state = self._env.reset(self._key, self._params)
        return np.int64(obs), {}

    def step(self, action: int | np.integer):
        if not self.action_space.contains(np.int64(action)):
            raise ValueError(f"The action must be in {self.action_space}, not {action}.")
        after = self._step(self._key, self._state, np.int32(action), self._params)
        obs, self._state, reward, terminated, info = after
        return np.int64(obs), float(reward), bool(terminated), False, info


for _family in FAMILIES:
    if (_id := f"surveyor/{_family.name}-v0") not in gymnasium.registry:
        _options = {"family": _family.name, "size": 10}
        gymnasium.register(_id, f"{__name__}:GymnasiumEnv", kwargs=_options)
