"""Bootstrapped DQN with additive priors: Osband et al. (2016, 2018), https://arxiv.org/abs/1806.03335."""

from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from surveyor.agents.base import Q
from surveyor.agents.learner import QLearner
from surveyor.agents.options import NonNegative, Share, Size
from surveyor.inference.policies import allowed
from surveyor.models.losses import PerHead, per_head, td_target
from surveyor.models.q import FixedQ, Heads, QModel, QValues
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Obs, Transition, Update


class BootDQNState(eqx.Module):
    """Everything that the ensemble changes."""

    ensemble: QModel
    prior: FixedQ | None
    """prior_weight · p_k of networks that are never trained; None without priors."""
    masks: Int[Array, ""]
    """Seed of the bootstrap's coins."""


class BootDQN(QLearner[BootDQNState, Heads]):
    """An ensemble of Q networks, each learning from its own bootstrap sample of the experience.

    The index is a head: one network is followed for a whole episode. To every network a fixed
    random one is added, which keeps the ensemble diverse where there is no data:
    Q_k = f_k + prior_weight · p_k, and each f_k learns with its own Q_k in its targets.

    The defaults are the paper's table 2, B+P 1x. Evaluations act on the mean of the ensemble.
    """

    one_start: ClassVar[bool] = False

    ensemble: Size = 10
    """K, the number of heads."""
    prior_weight: NonNegative = 0.1
    """Weight of the additive prior networks."""
    bootstrap: Share = 0.75
    """Probability that a head ever sees a given transition, drawn once for each pair."""
    trained: Literal["one", "all"] = "one"
    """Heads trained in a gradient step: one at random (released code, at the cost of a step of SU)
    or all of them (Osband et al.)."""

    def init(self, spec: EnvSpec, key: PRNG) -> BootDQNState:
        """Return untrained heads and their priors."""
        ensemble_key, prior_key, mask_key = jax.random.split(key, 3)
        weight, untrained = self.prior_weight, partial(self.q_model, spec, heads=self.ensemble)
        prior = untrained(prior_key).fixed(weight) if weight > 0 else None
        masks = jax.random.randint(mask_key, (), 0, jnp.iinfo(jnp.int32).max)
        return BootDQNState(untrained(ensemble_key), prior, masks)

    def sample(self, state: BootDQNState, key: PRNG) -> Heads:
        """Draw one head."""
        return jax.random.randint(key, (1,), 0, self.ensemble)

    def sample_many(self, state: BootDQNState, key: PRNG, count: int) -> tuple[Any, int]:
        """Return every head where at least as many are asked for, so that none is left out."""
        if self.ensemble > count:
            return super().sample_many(state, key, count)
        return jnp.arange(self.ensemble)[:, None], self.ensemble

    def greedy(self, state: BootDQNState) -> Heads:
        """Return all heads, whose mean is the best guess."""
        return jnp.arange(self.ensemble)

    def q(self, state: BootDQNState, index: Heads, obs: Obs) -> Q:
        """Return the mean over the heads of the index: one in training, all in evaluation."""
        return jnp.mean(state.ensemble.q(obs, index) + self._prior(state, obs, index), axis=-2)

    def observe(self, state: BootDQNState, transitions: Transition, mask: Mask) -> BootDQNState:
        """Change nothing: which head may see a transition follows from its number."""
        return state

    def learn(self, state: BootDQNState, batch: Batch, key: PRNG) -> tuple[BootDQNState, Update]:
        """Take a step of Q learning of one or all heads, each on its own bootstrap sample."""
        heads = self.greedy(state) if self.trained == "all" else self.sample(state, key)
        next_q = state.ensemble.target_q(batch.next_obs, heads)
        next_q = next_q + self._prior(state, batch.next_obs, heads)
        next_q = jnp.max(allowed(next_q, per_head(batch)), axis=-1)
        targets = td_target(batch, self.discount, next_q)
        if state.prior is not None:  # f_k learns what its prior does not already say
            prior = state.prior.q(batch.obs, heads)
            targets -= jnp.take_along_axis(prior, batch.action[:, None, None], axis=-1)[..., 0]
        mask = self._mask(state, batch.number, heads)
        ensemble, update = state.ensemble.fit(batch, targets, self.loss, heads, mask=mask)
        return BootDQNState(ensemble, state.prior, state.masks), update

    def _prior(self, state: BootDQNState, obs: Obs, heads: Heads) -> QValues | float:
        return 0.0 if state.prior is None else state.prior.q(obs, heads)

    def _mask(self, state: BootDQNState, number: Int[Array, " b"], heads: Heads) -> PerHead:
        """Return 1 where a transition is in a head's bootstrap: the same coin at every call."""
        if self.bootstrap == 1:
            return jnp.ones((len(number), len(heads)))
        key = jax.random.key(state.masks)

        def coin(number, head):
            coin_key = jax.random.fold_in(jax.random.fold_in(key, number), head)
            return jax.random.bernoulli(coin_key, self.bootstrap).astype(jnp.float32)

        return jax.vmap(jax.vmap(coin, in_axes=(None, 0)), in_axes=(0, None))(number, heads)
