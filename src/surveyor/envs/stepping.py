"""Step conventions of JAX environments, adapted to the one of gymnax 1.x.

That one is `reset(key, params) -> obs, state` and `step(key, state, action, params) -> obs, state,
reward, terminated, truncated, info`. A step that ends an episode returns the first observation and
state of the next one, and `info["final_observation"]` is the observation before that reset.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

from surveyor.errors import SurveyorError
from surveyor.types import PRNG

Step = tuple[PyTree, PyTree, Any, Bool[Array, ""], Bool[Array, ""], dict[str, Any]]
SYMBOLS = (10, 5, 3)
"""Largest object, colour and state (of a door, or a direction) in MiniGrid's observations."""
LIMITS = ("max_steps_in_episode", "max_timesteps")
"""Names of the time limit in parameters: gymnax's and Craftax's."""


class Discrete(NamedTuple):
    """A space of the numbers 0 to n - 1, as gymnax describes it."""

    n: int


class Box(NamedTuple):
    """A space of bounded arrays, as gymnax describes it."""

    low: Any
    high: Any
    shape: tuple[int, ...]
    dtype: Any


def adapt(env: Any, params: PyTree, name: str) -> Any:
    """Return an environment that steps as gymnax 1.x does; raise `SurveyorError` if it cannot."""

    def begin():
        _, state = env.reset(key := jax.random.key(0), params)
        return env.step(key, state, jnp.int32(0), params)

    after = jax.eval_shape(begin)
    if len(after) == 6 and "final_observation" in after[5]:
        return env
    if len(after) == 5:
        return FiveValues(env)
    raise SurveyorError(
        f"A step of {name} does not follow gymnax 1.x: it must return observation, state, "
        "reward, terminated, truncated, and info with final_observation, the one before "
        "any reset."
    )


@dataclasses.dataclass(frozen=True)
class FiveValues:
    """An environment whose steps return obs, state, reward, done and info: gymnax before 1.0.

    Where `reset_env` and `step_env` exist, which do not reset by themselves, episodes are restarted
    here with the keys that gymnax uses. An end that `is_terminal` owes to the time limit in the
    parameters is a truncation; every other end is a termination. Where only `step` exists, it is
    taken to reset by itself: the last observation is unknown then, so that every end counts as a
    termination, after which no agent looks at it.
    """

    env: Any

    def __getattr__(self, name: str) -> Any:
        if name == "env" or name.startswith("__"):  # not there yet while it is copied
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, key: PRNG, params: PyTree) -> tuple[PyTree, PyTree]:
        """Return the first observation and state of an episode."""
        return self.env.reset(jax.random.key_data(key), params)

    def step(self, key: PRNG, state: PyTree, action: Any, params: PyTree) -> Step:
        """Take one step in gymnax 1.x's convention."""
        key = jax.random.key_data(key)  # a state may keep keys, and checkpoints hold plain arrays
        if not (hasattr(self.env, "step_env") and hasattr(self.env, "reset_env")):
            obs, state, reward, done, info = self.env.step(key, state, action, params)
            done = jnp.asarray(done, bool)
            info = {**info, "final_observation": obs}
            return obs, state, reward, done, jnp.zeros_like(done), info
        return _step(self.env, key, state, action, params)


# Compiled by itself, as gymnax's own `step` is, so that parameters are traced: arithmetic on
# parameters that are Python numbers would be done in float64.
@functools.partial(jax.jit, static_argnums=0)
def _step(env: Any, key: Any, state: PyTree, action: Any, params: PyTree) -> Step:
    """Take one step of an environment of gymnax before 1.0, and restart it at an end."""
    step_key, reset_key = jax.random.split(key)
    final, state, reward, done, info = env.step_env(step_key, state, action, params)
    done = jnp.asarray(done, bool)
    truncated = done & ~_terminal(env, state, params)
    obs, state = restarted(done, env.reset_env(reset_key, params), (final, state))
    info = {**info, "final_observation": final}
    return obs, state, reward, done & ~truncated, truncated, info


def _terminal(env: Any, state: PyTree, params: Any) -> Bool[Array, ""]:
    """Return whether a state ends an episode even without a time limit; True if unknown."""
    limit = next((name for name in LIMITS if hasattr(params, name)), None)
    if limit is None or not dataclasses.is_dataclass(params) or not hasattr(env, "is_terminal"):
        return jnp.ones((), bool)
    change: Any = dataclasses.replace
    endless = change(params, **{limit: jnp.iinfo(jnp.int32).max})
    return jnp.asarray(env.is_terminal(state, endless), bool)


@dataclasses.dataclass(frozen=True)
class Timesteps:
    """An environment of Navix, whose state is its last `Timestep`.

    Navix resets at the step after an episode's end, with the key in the last state; here the end
    itself does so, with the same key. States are kept without the cache of drawn tiles, 200 kB each
    on a board of 8 × 8, which symbolic observations do not need.
    """

    env: Any
    name: str

    default_params = None

    def action_space(self, params: None = None) -> Discrete:
        """Return the actions."""
        return Discrete(int(self.env.action_space.n))

    def observation_space(self, params: None = None) -> Box:
        """Return the bounds of an observation."""
        space = self.env.observation_space
        return Box(0, np.broadcast_to(SYMBOLS, space.shape), space.shape, space.dtype)

    def reset(self, key: PRNG, params: None = None) -> tuple[PyTree, PyTree]:
        """Return the first observation and state of an episode."""
        return self._begin(jax.random.key_data(key))

    def step(self, key: PRNG, state: Any, action: Any, params: None = None) -> Step:
        """Take one step in gymnax 1.x's convention; the state's own key decides all draws."""
        last = self.env._step(state, action)
        over = last.is_done()
        obs, state = restarted(over, self._begin(last.state.key), (last.observation, last))
        info = {"final_observation": last.observation}
        return obs, state, last.reward, last.is_termination(), last.is_truncation(), info

    def _begin(self, key: Any) -> tuple[PyTree, PyTree]:
        first = self.env.reset(key)
        return first.observation, first.replace(state=first.state.replace(cache=None))


def restarted(over: Bool[Array, ""], first: PyTree, last: PyTree) -> PyTree:
    """Return the first observation and state where an episode is over, the last ones elsewhere."""
    return jax.tree.map(lambda new, old: jnp.where(over, new, old), first, last)
