"""What bsuite counts while an agent plays, kept in the state of a compiled environment."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from surveyor.envs.stepping import Step
from surveyor.types import PRNG

RATIOS = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
LOGGED = np.unique([round(ratio * 10**i, 1) for i in range(6) for ratio in RATIOS])
"""Episodes after which bsuite looks at its counts."""


class Tally(NamedTuple):
    """Counts over all episodes that have ended so far."""

    episodes: Int[Array, ""]
    bad: Int[Array, ""]
    """Episodes that left the optimal path."""
    total: Float[Array, ""]
    """Sum of returns."""
    best: Float[Array, ""]
    """Largest return, 0 at least."""
    solved_at: Int[Array, ""]
    """First logged episode at which the share of bad ones was low enough; 0 before."""
    now_bad: Bool[Array, ""]
    now: Float[Array, ""]
    """Return of the episode that is under way."""

    @classmethod
    def empty(cls) -> "Tally":
        """Return counts of zero."""
        none, zero = jnp.zeros((), jnp.int32), jnp.zeros(())
        return cls(none, none, zero, zero, none, jnp.zeros((), bool), zero)


class Counted(NamedTuple):
    """State of an environment, and its counts."""

    inner: PyTree
    tally: Tally


@dataclasses.dataclass(frozen=True)
class Tallied:
    """A compiled environment of bsuite that counts as bsuite's analysis needs it.

    A size of DeepSea is solved at the first logged episode, from `earliest` on, at which the share
    of bad episodes is below `share`.
    """

    env: Any
    name: str
    episodes: int
    """Episodes of the experiment; later ones are not counted."""
    share: float = 0.0
    earliest: int = 0
    mapping_seed: int | None = None
    """Seed that decides the parameters in place of the run's; None where there are none."""

    @property
    def default_params(self) -> PyTree:
        """The parameters that bsuite names."""
        if self.mapping_seed is None:
            return self.env.default_params
        return self.env.seeded_params(self.mapping_seed)

    def action_space(self, params: PyTree) -> Any:
        """Return the actions."""
        return self.env.action_space(params)

    def observation_space(self, params: PyTree) -> Any:
        """Return the bounds of an observation."""
        return self.env.observation_space(params)

    def reset(self, key: PRNG, params: PyTree) -> tuple[PyTree, Counted]:
        """Start the first episode, with counts of zero."""
        obs, state = self.env.reset(key, params)
        return obs, Counted(state, Tally.empty())

    def step(self, key: PRNG, state: Counted, action: Any, params: PyTree) -> Step:
        """Take one step in gymnax 1.x's convention, and count it."""
        known = hasattr(self.env, "bad")
        bad = self.env.bad(state.inner, action, params) if known else jnp.zeros((), bool)
        after = self.env.step(key, state.inner, action, params)
        obs, inner, reward, terminated, truncated, info = after
        tally = self._add(state.tally, reward, bad, terminated | truncated)
        return obs, Counted(inner, tally), reward, terminated, truncated, info

    def _add(self, tally: Tally, reward: Any, bad: Any, over: Any) -> Tally:
        counts = over & (tally.episodes < self.episodes)
        now, now_bad = tally.now + reward, tally.now_bad | bad
        episodes = tally.episodes + counts
        wrong = tally.bad + (counts & now_bad)
        logged = counts & jnp.any(episodes == LOGGED) & (episodes >= self.earliest)
        low = logged & (wrong < self.share * episodes) & (tally.solved_at == 0)
        return Tally(
            episodes,
            wrong,
            tally.total + jnp.where(counts, now, 0.0),
            jnp.where(counts, jnp.maximum(tally.best, now), tally.best),
            jnp.where(low, episodes, tally.solved_at),
            now_bad & ~over,
            jnp.where(over, 0.0, now),
        )
