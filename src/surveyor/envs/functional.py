"""Adapter for functional environments of other libraries."""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from surveyor.envs import stepping
from surveyor.envs.packing import Leaf, Packing
from surveyor.envs.reading import MASK
from surveyor.errors import SurveyorError, require
from surveyor.types import PRNG, EnvSpec, Obs, stacked

Flag = Bool[Array, ""]
Legal = Bool[Array, " actions"] | None


class Held(eqx.Module):
    """The state of an environment, and what came with its last observation."""

    inner: PyTree
    frames: Obs | None
    """The stack of frames that was observed; None where frames are not stacked."""
    legal: Legal
    """Actions that are allowed now; None where all always are."""
    final_legal: Legal
    """Actions that were allowed after the last step, before any reset."""


class Functional(eqx.Module):
    """An environment with gymnax's `reset` and `step`, and its parameters."""

    inner: Any = eqx.field(static=True)
    params: PyTree
    name: str = eqx.field(static=True)
    spec: EnvSpec = eqx.field(static=True)
    reader: "TreeReader" = eqx.field(static=True)

    @classmethod
    def wrap(cls, env: Any, params: Any = None, name: str | None = None) -> "Functional":
        """Adapt an environment with the interface of gymnax, 1.x or older (see `stepping`).

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
        env = stepping.adapt(env, params, name)
        example, _ = jax.eval_shape(env.reset, jax.random.key(0), params)
        reader = TreeReader.of(name, example, env.observation_space(params))
        return cls(env, params, name, reader.specify(int(actions)), reader)

    def stacked(self, frames: int) -> "Functional":
        """Return the environment with observations that stack this many frames."""
        require(not self.spec.tabular, f"{self.name} has numbered states, which cannot be stacked.")
        return replace(self, spec=stacked(self.spec, frames))

    @property
    def by_seed(self) -> bool:
        """True if the run's seed decides the parameters, by the method `seeded_params(seed)`."""
        return hasattr(self.inner, "seeded_params")

    def seeded(self, seed: int) -> "Functional":
        """Return the environment of a run with this seed."""
        return replace(self, params=self.inner.seeded_params(seed)) if self.by_seed else self

    def reset(self, key: PRNG) -> tuple[Obs, PyTree]:
        """Return the first observation and state of an episode."""
        raw, state = self.inner.reset(key, self.params)
        obs, legal = self.reader(raw, self.spec)
        # Turn Python numbers into arrays, so that a step does not change the types of a state.
        state = jax.tree.map(jnp.asarray, state)
        if not self.spec.stack and not self.spec.masked:
            return obs, state
        obs = self._first(obs)
        return obs, Held(state, obs if self.spec.stack else None, legal, legal)

    def step(
        self, key: PRNG, state: PyTree, action: Int[Array, ""]
    ) -> tuple[Obs, PyTree, Float[Array, ""], Flag, Flag, Obs]:
        """Take one step; at an episode's end, start the next episode.

        Return observation, state, reward, terminated, truncated, and the observation before any
        reset.
        """
        held = state if isinstance(state, Held) else None
        state = state if held is None else held.inner
        after = self.inner.step(key, state, action, self.params)
        raw, new, reward, terminated, truncated, info = after
        (obs, legal), (final, final_legal) = (
            self.reader(each, self.spec) for each in (raw, info["final_observation"])
        )
        new = jax.tree.map(lambda x, old: jnp.asarray(x, old.dtype), new, state)
        reward = jnp.asarray(reward, jnp.float32)
        if held is not None:
            if held.frames is not None:
                final = jnp.concatenate([held.frames[1:], final[None]])
                obs = jnp.where(terminated | truncated, self._first(obs), final)
            if final_legal is not None:  # one that forbids everything at an end allows all
                empty = ~jnp.any(final_legal) & (terminated | truncated)
                final_legal = final_legal | empty
            new = Held(new, None if held.frames is None else obs, legal, final_legal)
        return obs, new, reward, terminated, truncated, final

    def _first(self, frame: Obs) -> Obs:
        """Return the stack of an episode's first frame, after zeros."""
        if not self.spec.stack:
            return frame
        return jnp.zeros(self.spec.shape, frame.dtype).at[-1].set(frame)


class TreeReader(NamedTuple):
    """Converts observations of one or many arrays into the one that agents take."""

    states: int
    """Number of states, where observations are their numbers; else 0."""
    mask: int | None
    """Place of the mask among the arrays of an observation; None if there is none."""
    shapes: tuple[tuple[int, ...], ...]
    """Shapes of the other arrays."""
    packing: Packing

    @classmethod
    def of(cls, name: str, example: PyTree, space: Any) -> "TreeReader":
        """Return the reader of observations like the example, from a space."""
        named, _ = jax.tree_util.tree_flatten_with_path(example)
        keys = [tuple(_key(entry) for entry in path) for path, _ in named]
        arrays = [leaf for _, leaf in named]
        require(all(hasattr(a, "dtype") for a in arrays), f"{name} has observations of no arrays.")
        mask = next((i for i, path in enumerate(keys) if path and path[-1] == MASK), None)
        rest = [i for i in range(len(arrays)) if i != mask]
        require(bool(rest), f"{name} has no observations that are numbers.")
        inner = [_inner(space, keys[i]) for i in rest]
        states = int(getattr(inner[0], "n", 0) or 0) if len(rest) == 1 else 0
        leaves = [
            Leaf.of(a.shape, a.dtype, getattr(each, "low", None), getattr(each, "high", None))
            for a, each in zip((arrays[i] for i in rest), inner, strict=True)
        ]
        return cls(states, mask, tuple(leaf.shape for leaf in leaves), Packing.of(leaves))

    def specify(self, actions: int) -> EnvSpec:
        """Return the spec for an agent."""
        masked = self.mask is not None
        if self.states:
            return EnvSpec(self.states, actions, masked=masked)
        return self.packing.specify(actions, masked)

    def __call__(self, raw: PyTree, spec: EnvSpec) -> tuple[Obs, Legal]:
        """Return an observation, and the actions that it allows if it says so."""
        arrays = jax.tree.leaves(raw)
        legal = None if self.mask is None else arrays.pop(self.mask).astype(bool)
        if self.states:
            return arrays[0].astype(jnp.int32), legal
        return self.packing(arrays, self.shapes, jnp).astype(spec.dtype), legal


def _key(entry: Any) -> Any:
    """Return the key, index or name in a path."""
    return next(getattr(entry, name) for name in ("key", "idx", "name") if hasattr(entry, name))


def _inner(space: Any, path: tuple[Any, ...]) -> Any:
    """Return the space of one array; None if spaces and observations are built differently."""
    for key in path:
        spaces: Any = getattr(space, "spaces", None)
        if isinstance(spaces, dict):
            space = spaces.get(key)
        else:
            inside = isinstance(spaces, tuple | list) and isinstance(key, int) and key < len(spaces)
            space = spaces[key] if inside else None
    return space


def coloured(channels: Any) -> np.ndarray:
    """Return a picture of a board, or of channels that are on or off, with a colour for each.

    Numbers above one are scaled by the largest.
    """
    channels = channels if channels.ndim == 3 else channels[..., None]
    count = channels.shape[-1]
    hue = np.arange(count) / count
    colours = 0.5 + 0.5 * np.cos(2 * np.pi * (hue[:, None] + np.array([0.0, 1 / 3, 2 / 3])))
    shown = np.max(channels[..., None].astype(float) * colours, axis=2)
    return (255 * shown.clip(0) / max(1.0, shown.max())).astype(np.uint8)
