"""Adapter for functional environments of other libraries."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from surveyor.errors import SurveyorError
from surveyor.types import EnvSpec


class Functional(eqx.Module):
    """An environment with gymnax's `reset` and `step`, and its parameters."""

    inner: Any = eqx.field(static=True)
    params: PyTree
    name: str = eqx.field(static=True)
    spec: EnvSpec = eqx.field(static=True)

    @classmethod
    def wrap(cls, env: Any, params: Any = None, name: str | None = None) -> "Functional":
        """Adapt an environment with the interface of gymnax 1.x.

        **Arguments:**

        - `env`: the environment.
        - `params`: its parameters; its default ones if None.
        - `name`: its name in messages; its own if None.
        """
        params = env.default_params if params is None else params
        name = name or str(getattr(env, "name", type(env).__name__))
        actions = getattr(env.action_space(params), "n", None)
        if actions is None:
            raise SurveyorError(f"{name} has continuous actions; surveyor needs discrete ones.")
        example = jax.eval_shape(lambda: env.reset(jax.random.key(0), params))[0]
        if not hasattr(example, "shape"):
            raise SurveyorError(
                f"{name} has observations of more than one array; surveyor needs one array."
            )
        _check_step(env, params, name)
        states = getattr(env.observation_space(params), "n", 0)
        dtype = "int32" if states else str(example.dtype)
        return cls(env, params, name, EnvSpec(int(states), int(actions), 0, example.shape, dtype))

    def reset(self, key: Key[Array, ""]) -> tuple[Shaped[Array, "..."], PyTree]:
        """Return the first observation and state of an episode."""
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
        """Take one step; at an episode's end, start the next episode.

        Return observation, state, reward, terminated, truncated, and the observation before any
        reset.
        """
        obs, new, reward, terminated, truncated, info = self.inner.step(
            key, state, action, self.params
        )
        final = info["final_observation"].astype(self.spec.dtype)
        new = jax.tree.map(lambda x, old: jnp.asarray(x, old.dtype), new, state)
        reward = jnp.asarray(reward, jnp.float32)
        return obs.astype(self.spec.dtype), new, reward, terminated, truncated, final


def _check_step(env: Any, params: Any, name: str) -> None:
    """Raise `SurveyorError` if a step does not follow gymnax 1.x."""

    def step():
        key = jax.random.key(0)
        return env.step(key, env.reset(key, params)[1], jnp.int32(0), params)

    after = jax.eval_shape(step)
    if len(after) != 6 or "final_observation" not in after[5]:
        raise SurveyorError(
            f"A step of {name} does not follow gymnax 1.x: it must return observation, state, "
            "reward, terminated, truncated, and info with final_observation, the one before any "
            "reset."
        )


def _strong(state: PyTree) -> PyTree:
    """Turn Python numbers into arrays, so that a step does not change the types of a state."""
    return jax.tree.map(jnp.asarray, state)
