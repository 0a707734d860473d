"""The replay of runs by steps, from several environments side by side.

In the compiled loop the arrays are JAX's; beside an environment that steps in Python they are
NumPy's and are written in place. All other code is the same.
"""

import dataclasses
from dataclasses import field
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PyTree, Shaped, UInt8

from surveyor.replay.priorities import drawn
from surveyor.replay.ring import Ring
from surveyor.replay.strategies import Draw, Floats, Numbers, Strategy, Uniform, fitting
from surveyor.replay.words import Words
from surveyor.types import Batch, EnvSpec, HostArrays, Schedule, Trail, Transition, pytree

Flags = Bool[HostArrays, " envs"]
STATIC = {"static": True}
TERMINATED, ENDED, SKIPPED = 1, 2, 4
"""Bits of `flags`: nothing follows as far as learning is concerned; another episode follows; no
step at all, because the environment only began an episode."""
WRITTEN_ONCE = ("obs", "next_obs", "action", "reward", "next_legal")
"""Arrays whose rows never change; a resumed run may add to `flags`, and learning to `priority`."""


@pytree
@dataclasses.dataclass(frozen=True)
class StepReplay:
    """The last time steps of all environments, oldest overwritten first.

    The observation that followed a step is kept beside it, so that no reset comes between the two.
    Where an observation is a stack of frames, only the newest is kept, a quarter or an eighth of
    the memory: the observation that followed is then stacked from the next steps, and the last step
    of an episode that was cut off, which nothing follows, is replaced by the one before it.

    It is no Equinox module: looking up a method of one takes longer than many a method here.
    """

    obs: Shaped[HostArrays, "time envs ..."]
    """Observations, or their newest frames; as words where `words` says how."""
    next_obs: Shaped[HostArrays, "time envs ..."] | None
    """Observations that followed them; None for frames."""
    action: Int[HostArrays, "time envs"]
    reward: Float[HostArrays, "time envs"]
    flags: UInt8[HostArrays, "time envs"]
    next_legal: Bool[HostArrays, "time envs actions"] | None
    """Actions that are allowed after each step; None where all always are."""
    priority: Float[HostArrays, "time envs"] | None
    """Weight of each in the draw; None where all are alike."""
    written: Int[HostArrays, ""]
    """Time steps written so far."""
    stack: int = field(metadata=STATIC)
    n_step: int = field(metadata=STATIC)
    discount: float = field(metadata=STATIC)
    strategy: Strategy = field(metadata=STATIC)
    words: Words | None = field(metadata=STATIC)
    """Packing of byte frames into 32-bit words; None if frames are stored unpacked."""

    @classmethod
    def create(cls, spec: EnvSpec, schedule: Schedule, *, host: bool = False) -> "StepReplay":
        """Return the empty replay that a schedule asks for, of NumPy's arrays with `host`.

        The capacity is of all environments, rounded down to a whole number for each.
        """
        xp, strategy = np if host else jnp, fitting(schedule.replay, "steps")
        lead = (max(schedule.capacity // schedule.envs, spec.stack + 2), schedule.envs)
        words = None if host else Words.of(spec)
        frame = (spec.frame, spec.dtype) if words is None else ((words.length,), "uint32")
        rows = (*lead, *frame[0]), frame[1]
        obs, next_obs = xp.zeros(*rows), None if spec.stack else xp.zeros(*rows)
        action, reward = xp.zeros(lead, xp.int32), xp.zeros(lead, xp.float32)
        priority = xp.zeros(lead, xp.float32) if strategy.prioritised else None
        flags, written = xp.zeros(lead, xp.uint8), xp.zeros((), xp.int32)
        legal = xp.zeros((*lead, spec.num_actions), bool) if spec.masked else None
        arrays = (obs, next_obs, action, reward, flags, legal, priority, written)
        return cls(*arrays, spec.stack, schedule.n_step, schedule.discount, strategy, words)

    def add(self, steps: Transition, ended: Flags, skipped: Flags | bool = False) -> "StepReplay":
        """Append one step of every environment; those that were skipped are never drawn."""
        xp = self.xp
        at = self._written % len(self.action)
        bits = (TERMINATED, steps.terminated), (ENDED, ended), (SKIPPED, skipped)
        flags = sum(bit * xp.asarray(where).astype(xp.uint8) for bit, where in bits)
        new: dict[str, Any] = {"action": steps.action, "reward": steps.reward, "flags": flags}
        seen = {"obs": steps.obs[:, -1] if self.stack else steps.obs}
        if not self.stack:
            seen["next_obs"] = steps.next_obs
        pack = self.words.pack if self.words else lambda frames: frames
        new |= {name: pack(frames) for name, frames in seen.items()}
        if self.next_legal is not None:
            new["next_legal"] = steps.next_legal
        if self.priority is not None:
            # A step that `sample` would replace by the one before is never drawn by its priority.
            drawn = ((flags & SKIPPED) == 0) & ((flags != ENDED) | (self.stack == 0))
            new["priority"] = xp.where(drawn, xp.maximum(1.0, xp.max(self.priority)), 0.0)
        changed = {name: _put(getattr(self, name), at, value) for name, value in new.items()}
        changed["written"] = _put(self.written, (), self.written + 1)
        return self if xp is np else dataclasses.replace(self, **changed)

    @property
    def count(self) -> Any:
        """Number of time steps that can be drawn."""
        first, end = self._range
        return max(end - first, 0) if self.xp is np else jnp.maximum(end - first, 0)

    def sample(self, u: Floats) -> Batch:
        return self._gather(self.strategy.draw(self, u))

    def sample_many(self, us: list[Floats]) -> Batch:
        """Return a batch for each row of numbers, along a new first axis, from one look-up."""
        draws = [self.strategy.draw(self, u) for u in us]
        parts = [draw.number for draw in draws], [draw.weight for draw in draws]
        number, weight = (None if part[0] is None else self.xp.stack(part) for part in parts)
        return self._gather(Draw(number, weight=weight))

    def _gather(self, drawn: Draw) -> Batch:
        """Return the transitions of a draw."""
        xp, envs, n = self.xp, self.action.shape[1], self.n_step
        time, env = self._place(drawn)
        if n == 1:
            return self._single(time, env, drawn)
        going = self._going(time, env)
        length = xp.sum(going, axis=-1, dtype=xp.int32)
        steps = xp.arange(n)
        powers = xp.asarray(self.discount, xp.float32) ** steps
        rewards = self._at(self.reward, time[..., None] + steps, env[..., None])
        last = time + length - 1
        return Batch(
            obs=self._observation(time, env),
            action=self._at(self.action, time, env),
            reward=xp.sum(xp.where(going, powers * rewards, 0), axis=-1).astype(xp.float32),
            next_obs=self._next(last, env),
            terminated=(self._at(self.flags, last, env) & TERMINATED) > 0,
            number=time * envs + env,
            discount=(xp.asarray(self.discount, xp.float32) ** length).astype(xp.float32),
            trail=self._trail(time, env, going, powers),
            weight=drawn.weight,
            next_legal=None if self.next_legal is None else self._at(self.next_legal, last, env),
        )

    def _single(self, time: Numbers, env: Numbers, drawn: Draw) -> Batch:
        """Return a batch of single steps, for which nothing is summed."""
        xp = self.xp
        return Batch(
            obs=self._observation(time, env),
            action=self._at(self.action, time, env),
            reward=self._at(self.reward, time, env),
            next_obs=self._next(time, env),
            terminated=(self._at(self.flags, time, env) & TERMINATED) > 0,
            number=time * self.action.shape[1] + env,
            discount=xp.full(time.shape, self.discount, xp.float32),
            weight=drawn.weight,
            next_legal=None if self.next_legal is None else self._at(self.next_legal, time, env),
        )

    def observations(self, u: Floats) -> Shaped[HostArrays, "b ..."]:
        """Return past observations, drawn uniformly."""
        return self._observation(*self._place(Uniform().draw(self, u)))

    def update_priorities(self, number: Numbers, errors: Floats | None) -> "StepReplay":
        if self.priority is None or errors is None:
            return self
        time, env = divmod(number, self.action.shape[1])
        new = self.strategy.priorities(self.xp.asarray(errors))
        priority = _put(self.priority, (time % len(self.action), env), new)
        return self if self.xp is np else dataclasses.replace(self, priority=priority)

    def split(self) -> tuple[Ring, "StepReplay"]:
        arrays = {name: getattr(self, name) for name in WRITTEN_ONCE}
        arrays = {name: array for name, array in arrays.items() if array is not None}
        rest = eqx.tree_at(
            lambda r: [getattr(r, name) for name in arrays], self, [None] * len(arrays)
        )
        return Ring(arrays, self.written, len(self.flags)), rest

    def joined(self, ring: Ring) -> "StepReplay":
        return dataclasses.replace(self, **ring.arrays)

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or JAX."""
        return np if isinstance(self.action, np.ndarray) else jnp

    def uniform(self, u: Floats) -> Numbers:
        """Return numbers of transitions, all equally likely."""
        (first, end), envs = self._range, self.action.shape[1]
        choice = (self.xp.asarray(u) * ((end - first) * envs)).astype(self.xp.int32)
        return first * envs + choice

    def by_priority(self, u: Floats) -> tuple[PyTree, PyTree, PyTree, PyTree]:
        """Draw in proportion to priorities.

        Return numbers of transitions, their priorities, the sum of all and how many there are.
        """
        xp, (capacity, envs), (first, end) = self.xp, self.action.shape, self._range
        ages = (xp.arange(capacity) - first) % capacity  # of each row, as a time after `first`
        sizes = xp.where((ages < end - first)[:, None], self.priority, 0.0).reshape(-1)
        choice, total = drawn(sizes, xp.asarray(u))
        number = (first + ages[choice // envs]) * envs + choice % envs
        return number, sizes[choice], total, (end - first) * envs

    def _place(self, drawn: Draw) -> tuple[Numbers, Numbers]:
        """Return time and environment of transitions, moved off steps that cannot be used."""
        time, env = divmod(drawn.number, self.action.shape[1])
        flags = self._at(self.flags, time, env)
        time = time - ((flags & SKIPPED) > 0)  # the step before ended an episode: a real one
        if self.stack:  # nothing is stored after a step that was cut off: take the one before
            time = time - (self._at(self.flags, time, env) == ENDED)
        return time, env

    def _going(self, time: Numbers, env: Numbers) -> Bool[HostArrays, "*b n"]:
        """Return whether step m of each transition still belongs to its return."""
        xp, steps = self.xp, self.xp.arange(self.n_step)
        flags = self._at(self.flags, time[..., None] + steps, env[..., None])
        over = xp.cumsum((flags != 0).astype(xp.int32), axis=-1)
        begun = xp.concatenate([xp.ones_like(over[..., :1]), over[..., :-1] == 0], axis=-1) > 0
        if not self.stack:
            return begun
        # Nothing is stored after a later step that was cut off: the return ends before it.
        cut = xp.cumsum(((flags == ENDED) & (steps > 0)).astype(xp.int32), axis=-1) > 0
        return begun & ~cut

    @property
    def _range(self) -> tuple[Any, Any]:
        """The range of times that can be drawn: whole stacks before, returns after."""
        now, capacity = self._written, len(self.action)
        before, after = (self.stack, self.n_step) if self.stack else (1, self.n_step - 1)
        full, oldest = now >= capacity, now - capacity + before
        # When it is full, the row before the oldest is the newest.
        first = (oldest if full else 0) if self.xp is np else jnp.where(full, oldest, 0)
        return first, now - after

    @property
    def _written(self) -> Any:
        """Time steps so far; NumPy's scalars are slower than Python's."""
        return int(self.written) if self.xp is np else self.written

    def _at(self, array: Any, time: Any, env: Any) -> Any:
        rows, envs = self.action.shape
        if self.xp is not np:
            return array[time % rows, env]
        # By one number for each row: NumPy needs more time with two.
        return array.reshape(-1, *array.shape[2:]).take(time % rows * envs + env, axis=0)

    def _frames(self, array: Any, time: Any, env: Any) -> Any:
        rows = self._at(array, time, env)
        return self.words.unpack(rows) if self.words else rows

    def _next(self, time: Any, env: Any) -> Any:
        """Return the observation that followed a step."""
        if self.next_obs is None:
            return self._observation(time + 1, env)
        return self._frames(self.next_obs, time, env)

    def _observation(self, time: Any, env: Any) -> Any:
        """Return the observation of a time, stacked from its frames where needed."""
        if not self.stack:
            return self._frames(self.obs, time, env)
        xp = self.xp
        back = time[..., None] - xp.arange(self.stack - 1, -1, -1)
        frames = self._frames(self.obs, back, env[..., None])
        ended = (self._at(self.flags, back[..., :-1], env[..., None]) & ENDED) > 0
        # A frame belongs to it if no episode ended between that frame and now.
        later = xp.cumsum(ended[..., ::-1].astype(xp.int32), axis=-1)[..., ::-1]
        same = xp.concatenate([later == 0, xp.ones_like(later[..., :1], bool)], axis=-1)
        same = same.reshape(*same.shape, *[1] * (frames.ndim - same.ndim))
        return xp.where(same, frames, xp.zeros((), frames.dtype))

    def _trail(self, time: Any, env: Any, going: Any, powers: Any) -> Trail:
        later = time[..., None] + self.xp.arange(1, going.shape[-1])
        return Trail(
            obs=self._observation(later, self.xp.broadcast_to(env[..., None], later.shape)),
            action=self._at(self.action, later, env[..., None]),
            discount=self.xp.where(going[..., 1:], powers[1:], 0.0).astype(self.xp.float32),
            legal=None if self.next_legal is None else self._at(self.next_legal, time, env),
        )


def _put(array: Any, at: Any, value: Any) -> Any:
    """Write a value: into NumPy's array itself, or into a new one of JAX."""
    if isinstance(array, np.ndarray):
        array[at] = value
        return array
    return array.at[at].set(value)
