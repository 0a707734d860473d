"""HyperAgent: Li, Xu, Han and Luo (2024), https://arxiv.org/abs/2402.10228."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.agents.base import Q
from surveyor.agents.learner import QLearner
from surveyor.agents.options import NonNegative, Rule, Share, Size, option
from surveyor.inference.policies import allowed
from surveyor.models.losses import Penalty, per_head, td_target
from surveyor.models.optimiser import Adam
from surveyor.models.q import FixedQ, QModel, QValues, mixed
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Obs, Transition, Update

Index = Float[Array, "*n _"]
OPTIMISM = Rule(lambda agent: agent.target == "optimistic", "target = optimistic")


class HyperAgentState(eqx.Module):
    """Everything that the hypermodel changes."""

    model: QModel
    """Heads m and h: the mean of Q, and its dependence on each dimension of the index."""
    prior: FixedQ | None
    """The additive prior's heads, which are never trained; None without a prior."""


class HyperAgent(QLearner[HyperAgentState, Index]):
    """A Q function that is linear in a random index, with a fixed random prior function.

    Q(s, a; z) = m(s, a) + ⟨z, h(s, a)⟩ + prior_scale · ⟨z, p(s, a)⟩, and the index z of an episode
    is drawn from the unit sphere. Evaluations act on z = 0, the mean.
    """

    dimensions: Size = 4
    """Length of the index."""
    prior_scale: NonNegative = 10.0
    """Factor on the fixed random prior function p."""
    indices: Size = 20
    """Indices that each example of a batch is trained on."""
    target: Literal["independent", "optimistic", "same"] = "independent"
    """Index in the target: one of its own for each example (independent, as released), the best of
    `target_indices` for each action (optimistic, the paper's variant of that name), or that of the
    prediction (same, as in Bootstrapped DQN)."""
    target_indices: Size = option(20, needs=OPTIMISM)
    """Indices of which an optimistic target takes the best."""
    loss: Penalty = "squared"
    """Penalty of an error: squared, as released, or smooth-L1."""
    discount: Share = 0.99
    """γ."""
    hidden: Size = 64
    batch_size: Size = 128

    def adam(self, eps: float = 1.5e-4) -> Adam:
        """Return the optimiser, with Adam's ε as released."""
        return super().adam(eps)

    def init(self, spec: EnvSpec, key: PRNG) -> HyperAgentState:
        """Return an untrained hypermodel and its prior function."""
        model_key, prior_key = jax.random.split(key)
        model = self.q_model(spec, model_key, 1 + self.dimensions)
        if self.prior_scale == 0:
            return HyperAgentState(model, None)
        prior = self.q_model(spec, prior_key, self.dimensions)
        # Each unit of a network's last hidden layer has weights of norm 1 over the index, as
        # released.
        scale = self.prior_scale * (prior.weights.shape[1] / self.dimensions) ** 0.5
        return HyperAgentState(model, prior.fixed(scale))

    def sample(self, state: HyperAgentState, key: PRNG) -> Index:
        """Draw z from the unit sphere."""
        return on_sphere(key, (self.dimensions,))

    def greedy(self, state: HyperAgentState) -> Index:
        """Return z = 0, the mean."""
        return jnp.zeros(self.dimensions)

    def q(self, state: HyperAgentState, index: Index, obs: Obs) -> Q:
        """Return m(s, ·) + ⟨z, h(s, ·) + prior_scale · p(s, ·)⟩."""
        heads = self._with_prior(state, state.model.q(obs), obs)
        return jnp.tensordot(with_mean(index), heads, [[0], [-2]])

    def observe(
        self, state: HyperAgentState, transitions: Transition, mask: Mask
    ) -> HyperAgentState:
        """Change nothing: all is learnt by gradients."""
        return state

    def learn(
        self, state: HyperAgentState, batch: Batch, key: PRNG
    ) -> tuple[HyperAgentState, Update]:
        """Take a step of double Q learning for `indices` indices of each example."""
        z_key, target_key = jax.random.split(key)
        z = on_sphere(z_key, (len(batch.action), self.indices, self.dimensions))
        targets = td_target(batch, self.discount, self.next_value(state, batch, z, target_key))
        targets = jnp.broadcast_to(targets, z.shape[:2])
        if state.prior is not None:  # m and h learn what the prior does not already say
            prior = mixed(state.prior.q(batch.obs, jnp.arange(self.dimensions)), z)
            targets -= jnp.take_along_axis(prior, batch.action[:, None, None], axis=-1)[..., 0]
        model, update = state.model.fit(batch, targets, self.loss, mix=with_mean(z))
        return HyperAgentState(model, state.prior), update

    def next_value(
        self, state: HyperAgentState, batch: Batch, z: Index, key: PRNG
    ) -> Float[Array, "b n"]:
        """Return the target network's Q of the action that the network chooses in s'."""
        if self.target != "same":
            count = self.target_indices if self.target == "optimistic" else 1
            z = on_sphere(key, (len(z), count, self.dimensions))
        both = (state.model.q(batch.next_obs), state.model.target_q(batch.next_obs))
        heads = (self._with_prior(state, q, batch.next_obs) for q in both)
        choosing, valued = (mixed(q, with_mean(z)) for q in heads)
        if self.target == "optimistic":
            choosing, valued = (jnp.max(q, axis=1, keepdims=True) for q in (choosing, valued))
        chosen = jnp.argmax(allowed(choosing, per_head(batch)), axis=-1, keepdims=True)
        return jnp.take_along_axis(valued, chosen, axis=-1)[..., 0]

    def _with_prior(self, state: HyperAgentState, heads: QValues, obs: Obs) -> QValues:
        if state.prior is None:
            return heads
        return heads.at[..., 1:, :].add(state.prior.q(obs, jnp.arange(self.dimensions)))


def on_sphere(key: PRNG, shape: tuple[int, ...]) -> Index:
    """Draw vectors along the last axis from the unit sphere."""
    z = jax.random.normal(key, shape)
    return z / jnp.linalg.norm(z, axis=-1, keepdims=True)


def with_mean(z: Index) -> Index:
    """Return the weights (1, z) of the heads."""
    return jnp.concatenate([jnp.ones((*z.shape[:-1], 1)), z], axis=-1)
