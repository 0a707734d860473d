"""Actions of a trained agent, for one observation or many, in one compiled call."""

import functools
import math
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from surveyor.agents.base import Agent
from surveyor.types import EnvSpec, QPosterior

Shape = tuple[int, ...]


class Policy:
    """The policy of an agent in one state.

    The state is taken apart once, and what greedy actions need beside an observation is kept: so a
    call is little more than one compiled program.
    """

    def __init__(self, agent: Agent, spec: EnvSpec, state: PyTree):
        self.agent, self.spec = agent, spec
        self.follow(state)
        structure = jax.tree.structure(state)

        def act(leaves, index, *seen):
            chosen = functools.partial(agent.act, jax.tree.unflatten(structure, leaves), index)
            return jax.vmap(chosen)(*seen)

        self._act, self._belief = jax.jit(act), jax.jit(agent.q_posterior)
        self._ties: dict[int, np.ndarray] = {}

    def follow(self, state: PyTree) -> None:
        """Act on this state from now on."""
        self.state, self._leaves = state, jax.tree.leaves(state)
        vars(self).pop("greedy", None)

    @functools.cached_property
    def greedy(self) -> Any:
        """The index of the best guess."""
        return self.agent.greedy(self.state)

    def sample(self, rng: np.random.Generator) -> Any:
        """Draw an index."""
        return self.agent.sample(self.state, jax.random.key(int(rng.integers(2**31))))

    def q_posterior(self, obs: np.ndarray) -> QPosterior:
        """Return mean and joint covariance of Q over observations and all actions."""
        return self._belief(self.state, obs.reshape(-1, *self.spec.shape))

    def __call__(
        self, obs: np.ndarray, mask: np.ndarray | None, index: Any, rng: np.random.Generator | None
    ) -> np.ndarray:
        """Return an action for each observation; ties are always broken alike without `rng`."""
        shape, actions = self.spec.shape, self.spec.num_actions
        lead: Shape = obs.shape[: obs.ndim - len(shape)]
        count = math.prod(lead)
        ties = self._fixed_ties(count) if rng is None else rng.random((count, actions), np.float32)
        seen = (obs.reshape(count, *shape), ties)
        seen = seen if mask is None else (*seen, mask.reshape(count, actions))
        return np.asarray(self._act(self._leaves, index, *seen), np.int64).reshape(lead)

    def _fixed_ties(self, count: int) -> np.ndarray:
        if count not in self._ties:
            shape = (count, self.spec.num_actions)
            self._ties = {count: np.random.default_rng(0).random(shape, np.float32)}
        return self._ties[count]
