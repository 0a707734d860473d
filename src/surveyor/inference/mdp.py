"""A sparse empirical MDP: counts of the successors of each state and action, and their rewards.

For every state and action a few slots hold the successors that were seen and their counts, so that
memory and the cost of a backup grow with the number of state-actions and not with its square.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.types import PRNG, EnvSpec, Mask, Transition

Pairs = Float[Array, "n actions"]  # a number for every state and action, such as a Q table
Slots = Float[Array, "n actions slots"]  # a number for every successor that was seen
Value = Callable[[Float[Array, "actions n"]], Float[Array, " n"]]  # V(s) from Q(·, s)

FREE = -1
"""The successor in a slot that holds none."""
ROUNDS = 5
"""Rounds of a Gamma draw: each is refused in less than 5% of the cases, all in one of 3 million."""


class EmpiricalMDP(eqx.Module):
    """Counts of successors and sums of rewards. The number after the last state is the end."""

    successor: Int[Array, "n actions slots"]
    count: Slots
    visits: Pairs
    reward: Pairs
    """Sum of all rewards."""

    @classmethod
    def empty(cls, spec: EnvSpec, slots: int) -> "EmpiricalMDP":
        """Return a model that has seen nothing, with this many slots for successors."""
        pairs = (spec.num_states, spec.num_actions)
        successor = jnp.full((*pairs, slots), FREE, jnp.int32)
        return cls(successor, jnp.zeros((*pairs, slots)), jnp.zeros(pairs), jnp.zeros(pairs))

    @property
    def mean_reward(self) -> Pairs:
        """Average of the rewards seen; 0 where there are none."""
        return self.reward / jnp.maximum(self.visits, 1.0)

    @property
    def frequencies(self) -> Slots:
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

    def sample_transitions(self, key: PRNG, alpha: float) -> Slots:
        """Draw the probability of every successor from a Dirichlet, with α for all others."""
        elsewhere = alpha + self.visits - jnp.sum(self.count, axis=-1)
        # Outcomes along the first axis: loops over short rows are slow on a CPU.
        count = jnp.moveaxis(self.count, -1, 0).reshape(self.count.shape[-1], -1)
        concentration = jnp.concatenate([count, elsewhere.reshape(1, -1)])
        gamma = log_gamma(key, jnp.maximum(concentration, 1e-6))
        gamma = jnp.where(concentration > 0, gamma, -jnp.inf)
        drawn = jax.nn.softmax(gamma, axis=0)[:-1]
        return jnp.moveaxis(drawn.reshape(-1, *elsewhere.shape), 0, -1)

    def solve(
        self, reward: Pairs, probability: Slots, value: Value, discount: float, horizon: int
    ) -> Pairs:
        """Return Q with `horizon` steps to go, by Bellman backups until nothing changes.

        `value` turns Q(·, s), actions along the first axis, into V(s), such as a maximum. Where the
        `probability` of the successors is below 1, the rest is worth nothing.
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

        start = (jnp.zeros((), jnp.int32), jnp.zeros(len(self.visits) + 1), jnp.asarray(True))
        return q(jax.lax.while_loop(going, backup, start)[1]).T


def log_gamma(key: PRNG, shape: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Draw the logarithm of Gamma(shape, 1), by Marsaglia and Tsang's method (2000).

    JAX's own draws one number after another on a CPU, because each may take another number of
    rounds. Here all go through the same few rounds together.
    """
    full, shape = shape.shape, shape.reshape(-1)  # loops over short rows are slow on a CPU
    d = shape + 2 / 3  # of Gamma(shape + 1), which the rounds draw
    c = 1 / (3 * jnp.sqrt(d))
    tiny = jnp.finfo(jnp.float32).tiny
    boost_key, *keys = jax.random.split(key, ROUNDS + 1)

    def propose(carry, key):
        log_v, accepted = carry
        normal_key, uniform_key = jax.random.split(key)
        x = jax.random.normal(normal_key, shape.shape)
        u = jax.random.uniform(uniform_key, shape.shape, minval=tiny)
        root = 1 + c * x
        proposal = 3 * jnp.log(jnp.maximum(root, 1e-9))
        fits = jnp.log(u) < 0.5 * x**2 + d - d * jnp.exp(proposal) + d * proposal
        log_v = jnp.where(accepted | (root <= 0), log_v, proposal)
        return (log_v, accepted | (fits & (root > 0))), None

    start = (jnp.zeros_like(shape), jnp.zeros(shape.shape, bool))
    (log_v, _), _ = jax.lax.scan(propose, start, jnp.stack(keys))
    # Gamma(k) is Gamma(k + 1) times U^(1/k).
    u = jax.random.uniform(boost_key, shape.shape, minval=tiny)
    return (jnp.log(d) + log_v + jnp.log(u) / shape).reshape(full)
