"""Adapter for functional environments of other libraries."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from surveyor.errors import SurveyorError
from surveyor.types import PRNG, EnvSpec, Obs

Flag = Bool[Array, ""]


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
        - `name`: its name in messages and run folders; its own or its class's if None.
        """
        params = env.default_params if params is None else params
        name = name or str(getattr(env, "name", type(env).__name__))
        actions = getattr(env.action_space(params), "n", None)
        if actions is None:
            raise SurveyorError(f"{name} has continuous actions; surveyor needs discrete ones.")

        def begin():
            obs, state = env.reset(key := jax.random.key(0), params)
            return obs, env.step(key, state, jnp.int32(0), params)

        example, after = jax.eval_shape(begin)
        if not hasattr(example, "shape"):
            raise SurveyorError(f"{name} has observations of many arrays; surveyor needs one.")
        if len(after) != 6 or "final_observation" not in after[5]:
            raise SurveyorError(
                f"A step of {name} does not follow gymnax 1.x: it must return observation, state, "
                "reward, terminated, truncated, and info with final_observation, the one before "
                "any reset."
            )
        states = getattr(env.observation_space(params), "n", 0)
        dtype = "int32" if states else str(example.dtype)
        return cls(env, params, name, EnvSpec(int(states), int(actions), 0, example.shape, dtype))

    def reset(self, key: PRNG) -> tuple[Obs, PyTree]:
        """Return the first observation and state of an episode."""
        obs, state = self.inner.reset(key, self.params)
        # Turn Python numbers into arrays, so that a step does not change the types of a state.
        return obs.astype(self.spec.dtype), jax.tree.map(jnp.asarray, state)

    def step(
        self, key: PRNG, state: PyTree, action: Int[Array, ""]
    ) -> tuple[Obs, PyTree, Float[Array, ""], Flag, Flag, Obs]:
        """Take one step; at an episode's end, start the next episode.

        Return observation, state, reward, terminated, truncated, and the observation before any
        reset.
        """
        after = self.inner.step(key, state, action, self.params)
        obs, new, reward, terminated, truncated, info = after
        final = info["final_observation"].astype(self.spec.dtype)
        new = jax.tree.map(lambda x, old: jnp.asarray(x, old.dtype), new, state)
        reward = jnp.asarray(reward, jnp.float32)
        return obs.astype(self.spec.dtype), new, reward, terminated, truncated, final


def coloured(channels: Any) -> np.ndarray:
    """Return a picture of an observation whose channels are on or off: a colour for each."""
    count = channels.shape[-1]
    hue = np.arange(count) / count
    colours = 0.5 + 0.5 * np.cos(2 * np.pi * (hue[:, None] + np.array([0.0, 1 / 3, 2 / 3])))
    shown = np.max(channels[..., None].astype(float) * colours, axis=2)
    return (255 * shown).astype(np.uint8)
