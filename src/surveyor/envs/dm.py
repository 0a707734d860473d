"""Adapter for environments with the interface of dm_env, such as bsuite's."""

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

INNER = ("_env", "_environment", "environment")
"""Names that wrappers have for the environment inside."""


class DmEnv(gymnasium.Env[Any, Any]):
    """A dm_env environment behind Gymnasium's interface.

    A last step with discount 0 is a termination, with another discount a truncation. Leading axes
    of length one, of which bsuite's vectors have one, are left out of observations.

    dm_env has no seeds. `reset(seed=…)` replaces the generator `_rng` of the environment and of
    those inside it, as bsuite has it, by one of this seed. An environment that draws random numbers
    elsewhere is not reproducible.
    """

    def __init__(self, env: Any):
        self.env = env
        self.observation_space = _space(env.observation_spec())
        self.action_space = _actions(env.action_spec())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            reseed(self.env, seed)
        return _read(self.env.reset().observation), {}

    def step(self, action: Any) -> Any:
        step = self.env.step(action)
        last = bool(step.last())
        terminated = last and not step.discount
        reward = 0.0 if step.reward is None else step.reward
        return _read(step.observation), reward, terminated, last and not terminated, {}

    def close(self) -> None:
        self.env.close()


def adapted(env: Any) -> Any:
    """Return a dm_env environment behind Gymnasium's interface; return all others as they are."""
    module = sys.modules.get("dm_env")  # there is no such environment before it is imported
    return env if module is None or not isinstance(env, module.Environment) else DmEnv(env)


def reseed(env: Any, seed: int) -> None:
    """Replace the generators of an environment and of those that it wraps."""
    makers = {np.random.RandomState: np.random.RandomState}
    makers |= {np.random.Generator: np.random.default_rng}
    while env is not None:
        own = vars(env)
        maker = makers.get(type(own.get("_rng")))
        if maker is not None:
            env._rng = maker(seed)
        env = next((own[name] for name in INNER if name in own), None)


def _read(obs: Any) -> Any:
    if isinstance(obs, dict):
        return {name: _read(part) for name, part in obs.items()}
    obs = np.asarray(obs)
    return obs.reshape(_shape(obs.shape))


def _shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape


def _space(spec: Any) -> spaces.Space:
    """Return the space of an observation spec, which may be a dictionary of specs."""
    if isinstance(spec, dict):
        return spaces.Dict({name: _space(part) for name, part in spec.items()})
    if hasattr(spec, "num_values"):
        return spaces.Discrete(int(spec.num_values))
    shape, dtype = _shape(spec.shape), np.dtype(spec.dtype)
    known = np.iinfo(dtype) if np.issubdtype(dtype, np.integer) else None
    low = getattr(spec, "minimum", known.min if known else -np.inf)
    high = getattr(spec, "maximum", known.max if known else np.inf)
    if dtype.kind == "b":
        low, high, dtype = 0, 1, np.dtype(np.uint8)
    bounds = [np.broadcast_to(bound, spec.shape).reshape(shape) for bound in (low, high)]
    return spaces.Box(bounds[0].astype(dtype), bounds[1].astype(dtype), shape, dtype.type)


def _actions(spec: Any) -> spaces.Space:
    """Return the space of an action spec: discrete for one whole number within bounds."""
    whole = getattr(spec, "shape", None) == () and np.issubdtype(spec.dtype, np.integer)
    if whole and hasattr(spec, "maximum"):
        low, high = int(spec.minimum), int(spec.maximum)
        return spaces.Discrete(high - low + 1, start=low)
    return _space(spec)
