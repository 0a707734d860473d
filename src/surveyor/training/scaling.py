"""Scaling of observations: one mechanism for all environments and agents.

Each number of a vector is mapped to [-1, 1] and each channel of an image to [0, 1], by the bounds
of the observation space, or by the range seen so far where these say nothing. An image of names of
things stays as it is. The replay holds observations as the environment gave them.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree, Shaped

from surveyor.agents.base import Action, Agent, Legal, Q, Ties
from surveyor.errors import require
from surveyor.types import (
    PRNG,
    Batch,
    EnvSpec,
    Mask,
    Obs,
    QPosterior,
    Schedule,
    Transition,
    Update,
    channel_axis,
)

Groups = Float[Array, " groups"]


class Ranges(eqx.Module):
    """Smallest and largest value of each channel of an image and of each other number."""

    low: Groups
    high: Groups
    spec: EnvSpec = eqx.field(static=True)

    @classmethod
    def create(cls, spec: EnvSpec) -> "Ranges":
        """Return the bounds; an unknown one is where no number is beyond it yet."""
        low, high = np.array(spec.bounds, np.float32).T
        low, high = np.where(np.isinf(low), np.inf, low), np.where(np.isinf(high), -np.inf, high)
        return cls(jnp.asarray(low), jnp.asarray(high), spec)

    def widen(self, obs: Shaped[Array, "n ..."], mask: Mask) -> "Ranges":
        """Return the ranges with these observations in them, where bounds are unknown."""
        known_low, known_high = np.isfinite(np.array(self.spec.bounds)).T
        frames = obs.reshape(len(obs), -1, *self.spec.frame).astype(jnp.float32)
        counted = mask.reshape(-1, *[1] * (frames.ndim - 1))
        least = self._grouped(jnp.min(jnp.where(counted, frames, jnp.inf), axis=(0, 1)), jnp.min)
        most = self._grouped(jnp.max(jnp.where(counted, frames, -jnp.inf), axis=(0, 1)), jnp.max)
        low = jnp.where(known_low, self.low, jnp.minimum(self.low, least))
        return Ranges(
            low, jnp.where(known_high, self.high, jnp.maximum(self.high, most)), self.spec
        )

    def scale(self, obs: Obs) -> Float[Array, "..."]:
        """Return vectors in [-1, 1] and images in [0, 1]; 0 for what has been constant so far."""
        span = self.high - self.low
        seen = jnp.isfinite(span) & (span > 0)
        factor = jnp.where(seen, 1 / jnp.where(seen, span, 1.0), 0.0)
        unit = -jnp.where(seen, self.low, 0.0) * factor  # of a map to [0, 1]
        image = np.arange(len(span)) < self._channels
        factor, offset = jnp.where(image, factor, 2 * factor), jnp.where(image, unit, 2 * unit - 1)
        offset = jnp.where(seen, offset, 0.0)
        named = np.arange(len(span)) < len(self.spec.codes)
        factor, offset = jnp.where(named, 1.0, factor), jnp.where(named, 0.0, offset)
        return obs.astype(jnp.float32) * self._spread(factor) + self._spread(offset)

    @property
    def _channels(self) -> int:
        """Number of groups that are channels of an image."""
        shape = self.spec.picture
        axis = channel_axis(shape)
        return 0 if not shape else 1 if axis is None else shape[axis]

    def _grouped(self, values: Float[Array, "*frame"], reduce: Callable[..., Array]) -> Groups:
        """Return one value for each group from one for each number of a frame."""
        if not (shape := self.spec.picture):
            return values.reshape(-1)
        flat = values.reshape(-1)
        image, rest = flat[: math.prod(shape)].reshape(shape), flat[math.prod(shape) :]
        axes = tuple(axis for axis in range(len(shape)) if axis != channel_axis(shape))
        return jnp.concatenate([reduce(image, axis=axes).reshape(-1), rest])

    def _spread(self, groups: Groups) -> Float[Array, "..."]:
        """Return the value of each number of a frame from one for each group."""
        shape, frame = self.spec.picture, self.spec.frame
        if not shape:
            return groups.reshape(frame)
        sides = [side if axis == channel_axis(shape) else 1 for axis, side in enumerate(shape)]
        image, rest = groups[: self._channels].reshape(sides), groups[self._channels :]
        if frame == shape:
            return image
        return jnp.concatenate([jnp.broadcast_to(image, shape).reshape(-1), rest])


class ScaledState(eqx.Module):
    """The state of an agent, and the ranges that scale what it sees."""

    inner: PyTree
    ranges: Ranges


class Scaled(Agent[ScaledState, Any]):
    """An agent that sees scaled observations."""

    inner: Agent

    def __getattr__(self, name: str) -> Any:
        """Return a hyperparameter of the agent."""
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def closed_form(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.closed_form

    @property
    def random_q(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.random_q

    @property
    def schedule(self) -> Schedule:
        return self.inner.schedule

    def init(self, spec: EnvSpec, key: PRNG) -> ScaledState:
        """Return the state of an agent whose observations are floats."""
        seen = dataclasses.replace(spec, dtype="float32", image=spec.picture, bounds=())
        return ScaledState(self.inner.init(seen, key), Ranges.create(spec))

    def sample(self, state: ScaledState, key: PRNG) -> Any:
        return self.inner.sample(state.inner, key)

    def sample_many(self, state: ScaledState, key: PRNG, count: int) -> tuple[Any, int]:
        return self.inner.sample_many(state.inner, key, count)

    def greedy(self, state: ScaledState) -> Any:
        return self.inner.greedy(state.inner)

    def q(self, state: ScaledState, index: Any, obs: Obs) -> Q:
        return self.inner.q(state.inner, index, state.ranges.scale(obs))

    def act(self, state: ScaledState, index: Any, obs: Obs, u: Ties, legal: Legal = None) -> Action:
        masked = () if legal is None else (legal,)
        return self.inner.act(state.inner, index, state.ranges.scale(obs), u, *masked)

    def observe(self, state: ScaledState, transitions: Transition, mask: Mask) -> ScaledState:
        """Widen the ranges, then let the agent observe."""
        ranges = state.ranges.widen(transitions.obs, mask)
        return ScaledState(
            self.inner.observe(state.inner, _seen(ranges, transitions), mask), ranges
        )

    def learn(self, state: ScaledState, batch: Batch, key: PRNG) -> tuple[ScaledState, Update]:
        seen = _seen(state.ranges, batch)
        if batch.trail is not None:
            trail = dataclasses.replace(batch.trail, obs=state.ranges.scale(batch.trail.obs))
            seen = dataclasses.replace(seen, trail=trail)
        inner, update = self.inner.learn(state.inner, seen, key)
        return ScaledState(inner, state.ranges), update

    def q_posterior(self, state: ScaledState, obs: Obs, key: PRNG | None = None) -> QPosterior:
        return self.inner.q_posterior(state.inner, state.ranges.scale(obs), key)

    def diagnose(self, state: ScaledState, obs: Obs) -> dict[str, Float[Array, ""]]:
        return self.inner.diagnose(state.inner, state.ranges.scale(obs))


def prepared(agent: Agent, spec: EnvSpec, *, scale: bool = True) -> Agent:
    """Return the agent that a runner trains: with scaled observations where they need it."""
    require(scale or bool(spec.bounds), "Nothing is scaled here, so scale = False has no effect.")
    return Scaled(agent) if scale and spec.bounds else agent


def _seen(ranges: Ranges, transitions: Any) -> Any:
    obs, after = ranges.scale(transitions.obs), ranges.scale(transitions.next_obs)
    return dataclasses.replace(transitions, obs=obs, next_obs=after)
