"""Functional environments of other libraries, brought to one form; MinAtar through gymnax."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from surveyor.errors import SurveyorError, missing, unknown
from surveyor.types import EnvSpec

MINATAR = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
"""The five games."""


class Functional(eqx.Module):
    """An environment with gymnax's `reset` and `step`, and its parameters."""

    inner: Any = eqx.field(static=True)
    params: PyTree
    name: str = eqx.field(static=True)
    spec: EnvSpec = eqx.field(static=True)

    @classmethod
    def wrap(cls, env: Any, params: Any = None, name: str | None = None) -> "Functional":
        """From an environment with the interface of gymnax 1.x."""
        params = env.default_params if params is None else params
        name = name or str(getattr(env, "name", type(env).__name__))
        actions = getattr(env.action_space(params), "n", None)
        if actions is None:
            raise SurveyorError(f"{name} has continuous actions; surveyor needs discrete ones.")
        example = jax.eval_shape(lambda: env.reset(jax.random.key(0), params))[0]
        if not hasattr(example, "shape"):
            raise SurveyorError(
                f"{name} has observations of several parts; surveyor needs one array."
            )
        _check_step(env, params, name)
        states = getattr(env.observation_space(params), "n", 0)
        dtype = "int32" if states else str(example.dtype)
        return cls(env, params, name, EnvSpec(int(states), int(actions), 0, example.shape, dtype))

    def reset(self, key: Key[Array, ""]) -> tuple[Shaped[Array, "..."], PyTree]:
        """First observation and state of an episode."""
        obs, state = self.inner.reset(key, self.params)
        return obs.astype(self.spec.dtype), _strong(state)

    def step(
        self, key: Key[Array, ""], state: PyTree, action: Int[Array, ""]
    ) -> tuple[
        Shaped[Array, "..."],
        PyTree,
        Float[Array, ""],
        Bool[Array, ""],
        Bool[Array, ""],
        Shaped[Array, "..."],
    ]:
        """One step: observation and state (of the next episode where one ended), reward,
        terminated, truncated, and the observation before any reset."""
        obs, new, reward, terminated, truncated, info = self.inner.step(
            key, state, action, self.params
        )
        final = info["final_observation"].astype(self.spec.dtype)
        new = jax.tree.map(lambda x, old: jnp.asarray(x, old.dtype), new, state)
        reward = jnp.asarray(reward, jnp.float32)
        return obs.astype(self.spec.dtype), new, reward, terminated, truncated, final


def _check_step(env: Any, params: Any, name: str) -> None:
    """An error where a step is not that of gymnax 1.x."""

    def step():
        key = jax.random.key(0)
        return env.step(key, env.reset(key, params)[1], jnp.int32(0), params)

    after = jax.eval_shape(step)
    if len(after) != 6 or "final_observation" not in after[5]:
        raise SurveyorError(
            f"A step of {name} is not that of gymnax 1.x: observation, state, reward, terminated, "
            "truncated, and info with final_observation, the observation before any reset."
        )


@functools.cache  # one object for each, by which compiled programs are known
def minatar(game: str) -> Functional:
    """One of the five games."""
    if game not in MINATAR:
        names = [f"MinAtar/{known}" for known in MINATAR]
        raise unknown("environment", f"MinAtar/{game}", names)
    try:
        import gymnax
    except ImportError:
        raise missing("gymnax", "minatar", f"MinAtar/{game}") from None
    env, params = gymnax.make(f"{game}-MinAtar")
    wrapped = Functional.wrap(env, params, f"MinAtar/{game}")
    # Every channel is 0 or 1: a byte each in the replay.
    spec = EnvSpec(0, wrapped.spec.num_actions, 0, wrapped.spec.shape, "bool")
    return Functional(env, params, wrapped.name, spec)


def _strong(state: PyTree) -> PyTree:
    """Python's numbers as arrays, so that a state has the same types before and after a step."""
    return jax.tree.map(jnp.asarray, state)
