"""An agent of one's own: optimistic planning with visit counts, on numbered states.

    python examples/optimistic_counts.py

It solves the empirical MDP with a bonus of scale / √n on every reward, for n visits.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

import surveyor as sv
from surveyor.agents import Entry, register
from surveyor.agents.options import Positive
from surveyor.inference.mdp import EmpiricalMDP
from surveyor.types import PRNG, Mask


class CountsState(eqx.Module):
    """Everything observed so far."""

    model: EmpiricalMDP
    horizon: int = eqx.field(static=True)


class OptimisticCounts(sv.Agent[CountsState, Float[Array, "n actions"]]):
    """Plan in the empirical MDP as if every reward were larger by scale / √visits."""

    by_episodes: ClassVar[bool] = True

    scale: Positive = 1.0
    """Bonus of an action that was tried once."""

    def init(self, spec: sv.EnvSpec, key: PRNG) -> CountsState:
        """Return a model that has seen nothing."""
        return CountsState(EmpiricalMDP.empty(spec, 8), spec.horizon)

    def sample(self, state: CountsState, key: PRNG) -> Float[Array, "n actions"]:
        """Return the optimistic Q table."""
        return self._solve(state, self.scale)

    def greedy(self, state: CountsState) -> Float[Array, "n actions"]:
        """Return the Q table without bonus."""
        return self._solve(state, 0.0)

    def q(
        self, state: CountsState, index: Float[Array, "n actions"], obs: Int[Array, "*b"]
    ) -> Float[Array, "*b actions"]:
        """Look up the table."""
        return index[obs]

    def observe(self, state: CountsState, transitions: sv.Transition, mask: Mask) -> CountsState:
        """Count the transitions."""
        return CountsState(state.model.add(transitions, mask), state.horizon)

    def learn(
        self, state: CountsState, batch: sv.Batch, key: PRNG
    ) -> tuple[CountsState, sv.Update]:
        """Change nothing: there is no gradient."""
        return state, sv.Update()

    def _solve(self, state: CountsState, scale: float) -> Float[Array, "n actions"]:
        model = state.model
        bonus = scale / jnp.sqrt(jnp.maximum(model.visits, 0.5))
        best = lambda q: jnp.max(q, axis=0)  # noqa: E731
        return model.solve(model.mean_reward + bonus, model.frequencies, best, 1.0, state.horizon)


register(Entry("optimistic-counts", "Counts", OptimisticCounts, "Optimism by visit counts."))

if __name__ == "__main__":
    run = sv.train(OptimisticCounts(), "Chain-10")
    print(f"Chain-10 solved at episode {run.solved_at}")
