"""SU+, this library's own agent: samples of where a reward may be that has not been met."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from surveyor.agents.base import Q
from surveyor.agents.learner import NAMED, QLearner
from surveyor.agents.options import NonNegative, Positive, Probability, Size, option
from surveyor.inference.policies import Legal, allowed
from surveyor.models.losses import per_head, td_target
from surveyor.models.plain_table import PlainTable
from surveyor.models.q import QHeads, QValues, Weight
from surveyor.models.returns import Returns
from surveyor.models.visits import Visits
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Metrics, Obs, Transition, Update

Index = Int[Array, ""]
Supposed = Float[Array, "*b samples actions"]
Novel = Float[Array, "*b 1 actions"]
SHARE = 0.1
"""Bound on κ, in units of the odds that a step leads to nothing new."""


class State(eqx.Module):
    """Everything that changes."""

    model: QHeads
    """Heads m, and U_1 to U_K."""
    visits: Visits
    returns: Returns
    """Range of returns so far, which bounds m."""
    steps: Int[Array, "2"]
    """Steps so far, and those of them whose pair was not met before they were observed."""


class SUPlus(QLearner[State, Index]):
    """Somewhere is a reward that has not been met: each sample supposes where, and goes there.

    The index k is one of K samples, followed for a whole episode, and 0 the best guess:

    - ε_k(s, a) = ζ_k(s, a) / √(1 + contraction · n(s, a)), the reward that sample k supposes at
      (s, a) beyond what was met there: ζ_k is uniform in [0, 1] and fixed, n counts visits. Vectors
      of real numbers are seen number by number and as a whole, and ε_k is the mean over the views.
    - m(s, a) learns r + γ m(s', a'), the mean, by double Q learning within the range of returns
      that were met.
    - U_k(s, a) learns foresight^c · max_a' max(ε_k, U_k)(s', a'): the largest of these rewards
      ahead. Each counts once, so that going round in a circle adds nothing up. What lies behind an
      action that was never tried is supposed too: U_k = `untried` there. With the contrast c a
      network can tell one step from the next.
    - Q_k = m + κ_k (ε_k + U_k^(1/c)). How large rewards are is not known either: κ falls by the
      same factor from each sample to the next, by `spread` in all. Some samples explore whatever it
      costs, and others look for rewards like those that were met.

    Targets and evaluations use a running average of the network's weights.
    """

    ensemble: Size = 10
    """K, the number of samples."""
    curiosity: NonNegative = 30.0
    """Largest κ, in units of the range of returns met so far, at least of 1."""
    spread: Positive = 1e4
    """κ of the most curious sample over that of the least curious one."""
    contraction: Positive = 1e4
    """Prior variance of a reward over that of its noise: one visit leaves 1/√(1 + contraction)."""
    foresight: Probability = 0.99
    """Discount of a supposed reward, for each step on the way to it."""
    contrast: Positive = option(5.0, on="networks")
    """Power c of `foresight` with which a network learns U; Q counts its root. Tables have 1."""
    untried: Probability = 0.9
    """U of an action that was never tried."""
    settling: NonNegative = option(0.1, on="tables")
    """After n visits of a pair the learning rate of m is divided by 1 + settling · n."""
    bins: Size = option(8, on="networks")
    """Cells of a number of a vector over a length of 1; those of the whole are 4 times as long."""
    hidden: Size = option(128, on="networks")
    layer_norm: bool = option(True, on="networks", needs=NAMED)
    averaged: bool = option(True, on="networks")

    def init(self, spec: EnvSpec, key: PRNG) -> State:
        """Return counts of zero, m = 0, and U at its start: tables at `untried`, networks at 0."""
        model_key, visits_key = jax.random.split(key)
        visits = Visits.create(spec, visits_key, self.bins)
        none = jnp.zeros(2, jnp.int32)
        if self.tables(spec):
            start = jnp.full(1 + self.ensemble, self.untried).at[0].set(0.0)
            model: QHeads = PlainTable.create(spec, start, self.learning_rate)
        else:
            balance = (float(self.ensemble), *[1.0] * self.ensemble)  # m counts as all U together
            heads = {"heads": 1 + self.ensemble, "balance": balance}
            model = self.q_model(spec, model_key, outputs=False, **heads)
        return State(model, visits, Returns.create(self.envs), none)

    def sample(self, state: State, key: PRNG) -> Index:
        """Draw one of the samples."""
        return jax.random.randint(key, (), 1, 1 + self.ensemble)

    def sample_many(self, state: State, key: PRNG, count: int) -> tuple[Any, int]:
        """Return every sample where at least as many are asked for."""
        if self.ensemble > count:
            return super().sample_many(state, key, count)
        return jnp.arange(1, 1 + self.ensemble), self.ensemble

    def greedy(self, state: State) -> Index:
        """Return 0, the mean."""
        return jnp.zeros((), jnp.int32)

    def q(self, state: State, index: Index, obs: Obs) -> Q:
        """Return m + κ_k (ε_k + U_k^(1/c)), or the averaged m for index 0.

        Samples act on the newest network: an average of U lags behind what an episode has tried.
        """
        heads = jnp.where(index > 0, state.model.q(obs), state.model.target_q(obs))
        supposed, novel = self.supposed(state, obs)
        beyond = supposed + self.ahead(heads, novel) ** (1 / self.power(state))
        of_k = jnp.take(beyond, jnp.maximum(index - 1, 0), axis=-2)
        return heads[..., 0, :] + jnp.where(index > 0, self.weight(state, index), 0.0) * of_k

    def supposed(self, state: State, obs: Obs) -> tuple[Supposed, Novel]:
        """Return ε of every sample, and the share of views in which an action is untried."""
        codes = state.visits.codes(obs)
        visits = state.visits.at(codes)
        left = jax.lax.rsqrt(1 + self.contraction * visits)
        views = range(visits.shape[-2])  # one by one: five times as fast as a mean over an axis
        each = [
            left[..., view, :, None] * state.visits.uniforms(codes[..., view], self.ensemble)
            for view in views
        ]
        supposed = jnp.swapaxes(sum(each) / len(views), -1, -2)
        return supposed, jnp.mean(visits == 0, axis=-2, keepdims=True)

    def ahead(self, heads: QValues, novel: Novel) -> Supposed:
        """Return U of every sample."""
        return self.untried * novel + (1 - novel) * jnp.clip(heads[..., 1:, :], 0.0, 1.0)

    def power(self, state: State) -> float:
        """Return c, the contrast, or 1 for tables."""
        return 1.0 if isinstance(state.model, PlainTable) else self.contrast

    def weight(self, state: State, index: Index) -> Float[Array, ""]:
        """Return κ_k, which the odds that a step is nothing new bound.

        Where every observation is a new one, that it is new says nothing.
        """
        (steps, new), (low, high) = state.steps, state.returns.seen
        down = (index - 1) / max(1, self.ensemble - 1)
        odds = (1 + steps - new) / (1 + new)
        most = jnp.minimum(self.curiosity * self.spread**-down, SHARE * odds)
        return jnp.maximum(1.0, high - low) * most

    def observe(self, state: State, transitions: Transition, mask: Mask) -> State:
        """Count the visits, and widen the range of returns."""
        visits, first = state.visits.add(transitions, mask)
        new = jnp.stack([jnp.sum(mask), jnp.sum(first)])
        reward, over = transitions.reward, transitions.terminated
        if self.train_every and len(reward) == self.envs:
            returns = state.returns.beside(reward, over, mask, self.discount)
        else:
            returns = state.returns.along(reward, mask, self.discount)
        return State(state.model, visits, returns, state.steps + new)

    def learn(self, state: State, batch: Batch, key: PRNG) -> tuple[State, Update]:
        """Take a step towards the targets of m and of every U_k."""
        targets, mask = self.targets(state, batch), self.settled(state, batch)
        model, update = state.model.fit(batch, targets, self.loss, mask=mask)
        return State(model, state.visits, state.returns, state.steps), update

    def settled(self, state: State, batch: Batch) -> Weight:
        """Return the share of its rate by which each head of a table moves; all of a network's."""
        if not isinstance(state.model, PlainTable):
            return 1.0
        visits = state.visits.of(state.visits.codes(batch.obs), batch.action)[:, 0]
        share = jnp.ones((len(visits), 1 + self.ensemble))
        return share.at[:, 0].divide(1 + self.settling * visits)

    def targets(self, state: State, batch: Batch) -> Float[Array, "b heads"]:
        """Return r + γ m(s', a'), bounded, and foresight^c · max_a' max(ε_k, U_k)(s', a')."""
        obs, goes_on, legal = one_step_on(batch)
        first = jnp.zeros(1, jnp.int32)  # the head of m
        choosing = allowed(state.model.q(batch.next_obs, first), per_head(batch))
        chosen = jnp.argmax(choosing, axis=-1, keepdims=True)
        valued = state.model.target_q(batch.next_obs, first)
        value = jnp.take_along_axis(valued, chosen, axis=-1)[..., 0]
        low, high = state.returns.seen
        mean = td_target(batch, self.discount, jnp.clip(value, low, high))

        supposed, novel = self.supposed(state, obs)
        largest = jnp.maximum(supposed, self.ahead(state.model.target_q(obs), novel))
        best = jnp.max(allowed(largest, None if legal is None else legal[:, None]), axis=-1)
        step = self.foresight ** self.power(state)
        return jnp.concatenate([mean, step * goes_on[:, None] * best], axis=1)

    def diagnose(self, state: State, obs: Obs) -> Metrics:
        """Return mean Q, the mean of what is supposed ahead, and the largest κ."""
        _, novel = self.supposed(state, obs)
        ahead = self.ahead(state.model.q(obs), novel) ** (1 / self.power(state))
        beyond = jnp.max(ahead, axis=-1)
        known = {"supposed": jnp.mean(beyond), "curiosity": self.weight(state, jnp.int32(1))}
        return {**super().diagnose(state, obs), **known}


def one_step_on(batch: Batch) -> tuple[Obs, Bool[Array, " b"], Legal]:
    """Return what follows the first step: observation, whether it goes on, what is allowed."""
    obs, goes_on, legal = batch.next_obs, ~batch.terminated, batch.next_legal
    if (trail := batch.trail) is None:
        return obs, goes_on, legal
    more = trail.discount[:, 0] > 0  # else the first step was the last, of an episode or so far
    obs = jnp.where(more.reshape(-1, *[1] * (obs.ndim - 1)), trail.obs[:, 0], obs)
    if legal is not None and trail.legal is not None:
        legal = jnp.where(more[:, None], trail.legal, legal)
    return obs, goes_on | more, legal
