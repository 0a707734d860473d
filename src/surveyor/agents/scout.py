"""Scout: every sample of the belief seeks its own surprises. An experiment on the way to SU+."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents.base import Q
from surveyor.agents.learner import QLearner
from surveyor.agents.options import NonNegative, Positive, Probability, Size, option
from surveyor.inference.policies import allowed
from surveyor.models.losses import per_head, td_target
from surveyor.models.q import QModel, QValues
from surveyor.models.returns import Returns
from surveyor.models.visits import Visits
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Metrics, Obs, Transition, Update

Index = Int[Array, ""]
RARE = 1e-3
"""Share of novelty that is left where every step so far has been new."""


class ScoutState(eqx.Module):
    """Everything that changes."""

    model: QModel
    """Heads m, and U_1 to U_K."""
    visits: Visits
    returns: Returns
    """Range of returns so far, which bounds m."""
    steps: Int[Array, "2"]
    """Steps so far, and those of them that nothing was known about."""


class Scout(QLearner[ScoutState, Index]):
    """K samples of the belief; each goes to the nearest place that it expects to be surprised by.

    The index k is a sample, followed for a whole episode, and 0 the best guess:

    - ε_k(s, a) = ζ_k(s, a) / √(1 + contraction · n(s, a)), what sample k believes that the reward
      of (s, a) differs from its mean by: ζ_k is uniform in [0, 1] and fixed, n counts visits.
    - m(s, a) learns r + γ max_a' m(s', a'), the mean, by double Q learning within the
      range of returns that were met.
    - U_k(s, a) learns foresight · max_a' max(ε_k, U_k)(s', a'): the largest surprise ahead. A
      surprise is one only once, so that going round in a circle adds nothing up.
    - Q_k = m + κ (ε_k + U_k), κ = curiosity · the share of steps that were nothing new.
    """

    ensemble: Size = 10
    """K, the number of samples."""
    curiosity: NonNegative = 0.1
    """Largest weight of a surprise, in units of reward."""
    contraction: Positive = 100.0
    """Prior variance of a reward over that of its noise: one visit leaves 1/√(1 + contraction)."""
    foresight: Probability = 0.95
    """Discount of surprises: they have to stand out at every step, more than rewards."""
    bins: Size = option(20, on="networks")
    """Cells that a real number of an observation is divided into over a length of 1."""

    def init(self, spec: EnvSpec, key: PRNG) -> ScoutState:
        """Return untrained heads, at zero, and counts of zero."""
        model_key, visits_key = jax.random.split(key)
        model = self.q_model(spec, model_key, 1 + self.ensemble, outputs=False)
        visits = Visits.create(spec, visits_key, self.bins)
        none = jnp.zeros(2, jnp.int32)
        return ScoutState(model, visits, Returns.create(self.envs), none)

    def sample(self, state: ScoutState, key: PRNG) -> Index:
        """Draw one of the samples."""
        return jax.random.randint(key, (), 1, 1 + self.ensemble)

    def sample_many(self, state: ScoutState, key: PRNG, count: int) -> tuple[Any, int]:
        """Return every sample where at least as many are asked for."""
        if self.ensemble > count:
            return super().sample_many(state, key, count)
        return jnp.arange(1, 1 + self.ensemble), self.ensemble

    def greedy(self, state: ScoutState) -> Index:
        """Return 0, the mean."""
        return jnp.zeros((), jnp.int32)

    def q(self, state: ScoutState, index: Index, obs: Obs) -> Q:
        """Return m + κ (ε_k + U_k), or m for index 0."""
        heads, hopes = state.model.q(obs), self.hopes(state, obs)
        ahead = jnp.take(jnp.clip(heads[..., 1:, :], 0.0, 1.0) + hopes, index - 1, axis=-2)
        return heads[..., 0, :] + jnp.where(index > 0, self.weight(state), 0.0) * ahead

    def hopes(self, state: ScoutState, obs: Obs) -> QValues:
        """Return ε of every sample."""
        cells = state.visits.cells(obs)
        spread = jax.lax.rsqrt(1 + self.contraction * state.visits.at(cells))
        return state.visits.uniforms(cells, self.ensemble) * spread[..., None, :]

    def weight(self, state: ScoutState) -> Float[Array, ""]:
        """Return κ: where every observation is a new one, novelty says nothing."""
        steps, new = state.steps
        return self.curiosity * (1 - new / jnp.maximum(steps, 1) + RARE)

    def observe(self, state: ScoutState, transitions: Transition, mask: Mask) -> ScoutState:
        """Count the visits, and widen the range of returns."""
        cells = state.visits.cells(transitions.obs)
        known = jnp.take_along_axis(state.visits.at(cells), transitions.action[:, None], axis=1)
        new = jnp.stack([jnp.sum(mask), jnp.sum(mask & (known[:, 0] == 0))])
        reward, over = transitions.reward, transitions.terminated
        if self.train_every and len(reward) == self.envs:
            returns = state.returns.beside(reward, over, mask, self.discount)
        else:
            returns = state.returns.along(reward, mask, self.discount)
        visits = state.visits.add(transitions, mask)
        return ScoutState(state.model, visits, returns, state.steps + new)

    def learn(self, state: ScoutState, batch: Batch, key: PRNG) -> tuple[ScoutState, Update]:
        """Take a step towards the targets of m and of every U_k."""
        targets = jnp.concatenate([self.mean(state, batch), self.surprise(state, batch)], axis=1)
        model, update = state.model.fit(batch, targets, self.loss)
        return ScoutState(model, state.visits, state.returns, state.steps), update

    def mean(self, state: ScoutState, batch: Batch) -> Float[Array, "b 1"]:
        """Return r + γ m(s', a'), bounded, where a' is the network's choice."""
        choosing = allowed(state.model.q(batch.next_obs)[:, :1], per_head(batch))
        chosen = jnp.argmax(choosing, axis=-1, keepdims=True)
        valued = state.model.target_q(batch.next_obs)[:, :1]
        value = jnp.take_along_axis(valued, chosen, axis=-1)[..., 0]
        low, high = state.returns.seen
        return td_target(batch, self.discount, jnp.clip(value, low, high))

    def surprise(self, state: ScoutState, batch: Batch) -> Float[Array, "b samples"]:
        """Return foresight · max(ε_k, U_k)(s', a'), where a' is the network's choice; else 0."""
        obs, goes_on = batch.next_obs, ~batch.terminated
        legal: Any = batch.next_legal
        if (trail := batch.trail) is not None:  # s' is one step on, not several
            more, first = trail.discount[:, 0] > 0, trail.legal
            shape = (-1, *[1] * (obs.ndim - 1))
            obs = jnp.where(more.reshape(shape), trail.obs[:, 0], obs)
            legal = None if first is None else jnp.where(more[:, None], first, legal)
            goes_on = goes_on | more
        hopes = self.hopes(state, obs)
        ahead = (jnp.clip(q(obs)[:, 1:], 0.0, 1.0) for q in (state.model.q, state.model.target_q))
        choosing, valued = (jnp.maximum(hopes, each) for each in ahead)
        legal = None if legal is None else legal[:, None]
        chosen = jnp.argmax(allowed(choosing, legal), axis=-1, keepdims=True)
        value = jnp.take_along_axis(valued, chosen, axis=-1)[..., 0]
        return self.foresight * goes_on[:, None] * value

    def diagnose(self, state: ScoutState, obs: Obs) -> Metrics:
        """Return mean Q, the mean of the largest surprise ahead, and its weight."""
        ahead = jnp.max(jnp.clip(state.model.q(obs)[..., 1:, :], 0.0, 1.0), axis=-1)
        known = {"surprise": jnp.mean(ahead), "surprise_weight": self.weight(state)}
        return {**super().diagnose(state, obs), **known}
