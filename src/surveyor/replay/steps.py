"""The replay of agents that learn by steps, from several environments side by side.

In the compiled loop the arrays are JAX's; beside an environment that steps in Python they are
NumPy's and are written in place. The rest is the same code.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from surveyor.types import Batch, EnvSpec, Trail

TERMINATED, ENDED, SKIPPED = 1, 2, 4
"""Bits of `flags`: nothing follows as far as learning is concerned; another episode follows; no
step at all, for the environment only began an episode."""
PRIORITY_FLOOR = 1e-3
CORRECTION = 0.5
"""How much of the bias of prioritised draws is taken back by weights: β of Schaul et al."""


class Ring(eqx.Module):
    """The last time steps of all environments, oldest overwritten first.

    What followed a step is kept beside it, so that no reset ever comes between the two. Where an
    observation is a stack of frames, only the newest is kept, a quarter or an eighth of the memory:
    then what followed is put together from the next steps, and the last step of an episode that
    was cut off, which nothing follows, is replaced by the one before it.
    """

    obs: Any
    """Observations, or their newest frames: time × environments × shape."""
    next_obs: Any
    """What followed them; None for frames."""
    action: Any
    reward: Any
    flags: Any
    priority: Any
    """What each is drawn in proportion to; None for all alike."""
    written: Any
    """Time steps written since the beginning."""
    stack: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, spec: EnvSpec, capacity: int, envs: int, *, priority: bool, host: bool = False
    ) -> "Ring":
        """An empty one for about so many transitions: a whole number for each environment."""
        xp = np if host else jnp
        lead = (max(capacity // envs, spec.stack + 2), envs)
        frame = spec.shape[1:] if spec.stack else spec.shape
        return cls(
            obs=xp.zeros((*lead, *frame), spec.dtype),
            next_obs=None if spec.stack else xp.zeros((*lead, *frame), spec.dtype),
            action=xp.zeros(lead, xp.int32),
            reward=xp.zeros(lead, xp.float32),
            flags=xp.zeros(lead, xp.uint8),
            priority=xp.zeros(lead, xp.float32) if priority else None,
            written=xp.zeros((), xp.int32),
            stack=spec.stack,
        )

    def add(
        self,
        obs: Any,
        action: Any,
        reward: Any,
        next_obs: Any,
        terminated: Any,
        ended: Any,
        skipped: Any = False,
    ) -> "Ring":
        """Append one step of every environment; those that were skipped are never drawn."""
        xp = self._xp
        at = self.written % len(self.action)
        bits = (TERMINATED, terminated), (ENDED, ended), (SKIPPED, skipped)
        flags = sum(bit * xp.asarray(where).astype(xp.uint8) for bit, where in bits)
        # What `sample` would replace by the step before is never drawn by its priority.
        drawn = ((flags & SKIPPED) == 0) & ((flags != ENDED) | (self.stack == 0))
        new = {
            "obs": obs[:, -1] if self.stack else obs,
            "next_obs": None if self.stack else next_obs,
            "action": action,
            "reward": reward,
            "flags": flags,
        }
        if self.priority is not None:
            new["priority"] = xp.where(drawn, xp.maximum(1.0, xp.max(self.priority)), 0.0)
        arrays = {name: _put(getattr(self, name), at, value) for name, value in new.items()}
        arrays.setdefault("priority", None)
        return Ring(**arrays, written=_put(self.written, (), self.written + 1), stack=self.stack)

    def count(self, n_step: int) -> Any:
        """How many time steps can be drawn."""
        first, end = self._range(n_step)
        return self._xp.maximum(end - first, 0)

    def sample(self, u: Any, n_step: int, discount: float) -> Batch:
        """The transitions that these uniform numbers choose, over `n_step` steps or to the end."""
        xp, envs = self._xp, self.action.shape[1]
        time, env, weight = self._draw(u, n_step)
        flags = self._at(self.flags, time, env)
        time = time - ((flags & SKIPPED) > 0)  # the step before it is one, for it ended an episode
        if self.stack:  # what followed a step that was cut off is not there: take the one before
            time = time - (self._at(self.flags, time, env) == ENDED)
        going = self._going(time, env, n_step)
        length = xp.sum(going, axis=1, dtype=xp.int32)
        steps = xp.arange(n_step)
        powers = xp.asarray(discount, xp.float32) ** steps
        rewards = self._at(self.reward, time[:, None] + steps, env[:, None])
        last = time + length - 1
        after = self._observation(last + 1, env) if self.stack else None
        return Batch(
            obs=self._observation(time, env),
            action=self._at(self.action, time, env),
            reward=xp.sum(xp.where(going, powers * rewards, 0), axis=1).astype(xp.float32),
            next_obs=self._at(self.next_obs, last, env) if after is None else after,
            terminated=(self._at(self.flags, last, env) & TERMINATED) > 0,
            number=(time * envs + env).astype(xp.int32),
            discount=(xp.asarray(discount, xp.float32) ** length).astype(xp.float32),
            trail=self._trail(time, env, going, powers, rewards[:, 0]) if n_step > 1 else None,
            weight=weight,
        )

    def _going(self, time: Any, env: Any, n_step: int) -> Any:
        """Whether step m of each transition still belongs to it: b × n_step."""
        xp, steps = self._xp, self._xp.arange(n_step)
        if n_step == 1:
            return xp.ones((len(time), 1), bool)
        flags = self._at(self.flags, time[:, None] + steps, env[:, None])
        over = xp.cumsum((flags != 0).astype(xp.int32), axis=1)
        begun = xp.concatenate([xp.ones_like(over[:, :1]), over[:, :-1] == 0], axis=1) > 0
        if not self.stack:
            return begun
        # What followed a later step that was cut off is not there: the return ends before it.
        cut = xp.cumsum(((flags == ENDED) & (steps > 0)).astype(xp.int32), axis=1) > 0
        return begun & ~cut

    def reprioritise(self, number: Any, errors: Any, exponent: float) -> "Ring":
        """Draw these transitions in proportion to |error|^exponent from now on."""
        envs = self.action.shape[1]
        at = (number // envs) % len(self.action), number % envs
        size = (self._xp.abs(self._xp.asarray(errors)) + PRIORITY_FLOOR) ** exponent
        priority = _put(self.priority, at, size)
        return eqx.tree_at(lambda ring: ring.priority, self, priority)

    @property
    def _xp(self) -> Any:
        return np if isinstance(self.action, np.ndarray) else jnp

    def _range(self, n_step: int) -> tuple[Any, Any]:
        """The time steps that can be drawn: whole stacks before them, and whole returns after."""
        oldest = self._xp.maximum(self.written - len(self.action), 0)
        before, after = (self.stack, n_step) if self.stack else (1, n_step - 1)
        full = self.written >= len(self.action)  # then what is before the oldest is the newest
        return self._xp.where(full, oldest + before, 0), self.written - after

    def _draw(self, u: Any, n_step: int) -> tuple[Any, Any, Any]:
        xp, (capacity, envs) = self._xp, self.action.shape
        first, end = self._range(n_step)
        if self.priority is None:
            choice = (xp.asarray(u) * ((end - first) * envs)).astype(xp.int32)
            return first + choice // envs, choice % envs, None
        ages = (xp.arange(capacity) - first) % capacity  # of each row, as a time after `first`
        sizes = xp.where((ages < end - first)[:, None], self.priority, 0.0).reshape(-1)
        # NumPy adds up one by one, for which a million floats are too many; JAX does it in a tree.
        sums = xp.cumsum(sizes, dtype=np.float64 if xp is np else None)
        choice = xp.searchsorted(sums, xp.asarray(u) * sums[-1], side="right")
        choice = xp.minimum(choice, sizes.size - 1)
        share = sizes[choice] / sums[-1] * ((end - first) * envs)
        # Rounding of the sums may draw what has no priority, once in millions: that counts nothing.
        weight = xp.where(share > 0, xp.maximum(share, 1e-6) ** -CORRECTION, 0.0)
        weight = (weight / xp.max(weight)).astype(xp.float32)
        return first + ages[choice // envs], choice % envs, weight

    def _at(self, array: Any, time: Any, env: Any) -> Any:
        return array[time % len(self.action), env]

    def _observation(self, time: Any, env: Any) -> Any:
        """The observation of this time, from its frames where it is a stack of them."""
        if not self.stack:
            return self._at(self.obs, time, env)
        xp = self._xp
        back = time[..., None] - xp.arange(self.stack - 1, -1, -1)
        frames = self._at(self.obs, back, env[..., None])
        ended = (self._at(self.flags, back[..., :-1], env[..., None]) & ENDED) > 0
        # A frame belongs to it if no episode ended between that frame and now.
        later = xp.cumsum(ended[..., ::-1].astype(xp.int32), axis=-1)[..., ::-1]
        same = xp.concatenate([later == 0, xp.ones_like(later[..., :1], bool)], axis=-1)
        return xp.where(same[..., None, None], frames, xp.zeros((), frames.dtype))

    def _trail(self, time: Any, env: Any, going: Any, powers: Any, first: Any) -> Trail:
        later = time[:, None] + self._xp.arange(1, going.shape[1])
        return Trail(
            obs=self._observation(later, self._xp.broadcast_to(env[:, None], later.shape)),
            action=self._at(self.action, later, env[:, None]),
            discount=self._xp.where(going[:, 1:], powers[1:], 0.0).astype(self._xp.float32),
            reward=first,
        )


def _put(array: Any, at: Any, value: Any) -> Any:
    """The array with this value there: NumPy's own, changed, or a new one of JAX."""
    if array is None:
        return None
    if isinstance(array, np.ndarray):
        array[at] = value
        return array
    return array.at[at].set(value)
