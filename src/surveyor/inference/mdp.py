"""A sparse empirical MDP: counts of the successors of each state and action, and their rewards.

For every state and action a few slots hold the successors that were seen and their counts, so that
memory and the cost of a backup grow with the number of state-actions and not with its square.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.types import EnvSpec, Mask, Transition

FREE = -1
"""The successor in a slot that holds none."""


class EmpiricalMDP(eqx.Module):
    """Counts of successors and sums of rewards. The number after the last state is the end."""

    successor: Int[Array, "n actions slots"]
    count: Float[Array, "n actions slots"]
    visits: Float[Array, "n actions"]
    reward: Float[Array, "n actions"]
    """Sum of all rewards."""

    @classmethod
    def empty(cls, spec: EnvSpec, slots: int) -> "EmpiricalMDP":
        """Return a model that has seen nothing, with this many slots for successors."""
        pairs = (spec.num_states, spec.num_actions)
        zeros = jnp.zeros(pairs)
        successor = jnp.full((*pairs, slots), FREE, jnp.int32)
        return cls(successor, jnp.zeros((*pairs, slots)), zeros, jnp.copy(zeros))

    @property
    def mean_reward(self) -> Float[Array, "n actions"]:
        """Average of the rewards seen; 0 where there are none."""
        return self.reward / jnp.maximum(self.visits, 1.0)

    @property
    def frequencies(self) -> Float[Array, "n actions slots"]:
        """Share of the visits that each successor followed."""
        return self.count / jnp.maximum(self.visits, 1.0)[..., None]

    def add(self, transitions: Transition, mask: Mask) -> "EmpiricalMDP":
        """Count the transitions in `mask`, one after another.

        A successor for which no slot is left counts as a visit to somewhere unknown.
        """
        n = len(self.visits)

        def one(i, model: "EmpiricalMDP") -> "EmpiricalMDP":
            s, a = jnp.where(mask[i], transitions.obs[i], n), transitions.action[i]
            outcome = jnp.where(transitions.terminated[i], n, transitions.next_obs[i])
            known = model.successor.at[s, a].get(mode="clip")
            fits = jnp.where(known == outcome, 2, jnp.where(known == FREE, 1, 0))
            slot = jnp.where(jnp.max(fits) > 0, jnp.argmax(fits), known.size)
            return EmpiricalMDP(
                model.successor.at[s, a, slot].set(outcome, mode="drop"),
                model.count.at[s, a, slot].add(1.0, mode="drop"),
                model.visits.at[s, a].add(1.0, mode="drop"),
                model.reward.at[s, a].add(transitions.reward[i], mode="drop"),
            )

        return jax.lax.fori_loop(0, len(mask), one, self)

    def solve(
        self,
        reward: Float[Array, "n actions"],
        probability: Float[Array, "n actions slots"],
        value: Callable[[Float[Array, "actions n"]], Float[Array, " n"]],
        discount: float,
        horizon: int,
    ) -> Float[Array, "n actions"]:
        """Return Q with `horizon` steps to go, by Bellman backups until nothing changes.

        **Arguments:**

        - `reward`, `probability`: of every state and action, and of its successors; the rest of
          the probability is worth nothing.
        - `value`: turns Q(·, s), actions along the first axis, into V(s), such as a maximum.
        - `discount`: γ.
        - `horizon`: the largest number of backups.
        """
        # States along the last axis: loops over short rows are slow on a CPU.
        where = jnp.where(self.successor == FREE, len(self.visits), self.successor).T
        flow, reward = discount * probability.T, reward.T

        def q(v):
            return reward + jnp.sum(flow * v[where], axis=0)

        def backup(carry):
            steps, v, _ = carry
            new = jnp.append(value(q(v)), 0.0)
            return steps + 1, new, jnp.any(new != v)

        def going(carry):
            steps, _, changed = carry
            return changed & (steps < horizon - 1)

        nothing = jnp.zeros(len(self.visits) + 1)
        start = (jnp.zeros((), jnp.int32), nothing, jnp.asarray(True))
        return q(jax.lax.while_loop(going, backup, start)[1]).T
