"""Bootstrapped DQN with additive priors: Osband et al. (2016, 2018), https://arxiv.org/abs/1806.03335."""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from surveyor.agents import check
from surveyor.agents.learner import ATARI, CLASSIC, MINATAR
from surveyor.agents.qlearner import QLearner
from surveyor.models.losses import td_target
from surveyor.models.qnetwork import DeepQ, QNet, TabularQ
from surveyor.types import EnvSpec


class BootDQNState(eqx.Module):
    """What the ensemble has learnt so far."""

    ensemble: TabularQ | DeepQ
    prior: Float[Array, "n heads actions"] | QNet | None
    """p_k of networks that are never trained, times prior_weight: all its values where states are
    numbers. None without them."""
    masks: Int[Array, ""]
    """Seeds the bootstrap's coins."""


class BootDQN(QLearner):
    """An ensemble of Q networks, each learning from its own bootstrap sample of the experience.

    The index is a head: one network is followed for a whole episode. To every network a fixed
    random one is added, which keeps the ensemble diverse where there is no data:
    Q_k = f_k + prior_weight · p_k, and each f_k learns with its own Q_k in its targets.

    The defaults are `BootDQN.paper_1x()`. Tests act on the mean of the ensemble.
    """

    ensemble: int = 10
    """K, the number of heads."""
    prior_weight: float = 0.1
    """The weight of the additive prior networks."""
    bootstrap: float = 0.75
    """The probability that a head ever sees a given transition, drawn once for each of both."""
    trained: Literal["one", "all"] = "one"
    """Heads trained in a gradient step: one at random (released code, and what makes a step cost
    what a step of SU costs) or all of them (Osband et al.)."""

    def __check_init__(self):
        check.share(self, "bootstrap")
        check.at_least(self, 1, "ensemble")
        check.at_least(self, 0, "prior_weight")

    @classmethod
    def paper_1x(cls) -> "BootDQN":
        """Table 2, B+P 1x, as printed; γ = 1 as in the released code."""
        return cls()

    @classmethod
    def paper_25x(cls) -> "BootDQN":
        """Table 2, B+P 25x, as printed: 25 times the gradient steps; γ = 1."""
        return cls(prior_weight=0.0, bootstrap=1.0, gradient_steps=250)

    @classmethod
    def tree_25x(cls) -> "BootDQN":
        """B+P 25x with a prior, which table 2 prints as 0: without one all heads agree before the
        goal is found, and never look for it again. 10 is in the paper's own grid."""
        return dataclasses.replace(cls.paper_25x(), prior_weight=10.0)

    @classmethod
    def released_1x(cls) -> "BootDQN":
        """What the released code runs as B+P 1x."""
        return cls(prior_weight=0.0, bootstrap=0.5, hidden=50)

    @classmethod
    def released_25x(cls) -> "BootDQN":
        """What the released code runs as B+P 25x."""
        return cls(prior_weight=0.0, bootstrap=1.0, hidden=25, gradient_steps=250)

    @classmethod
    def chain(cls) -> "BootDQN":
        """For the chain, where the paper quotes Osband et al. (2018) and names no values: 20 heads
        that are all trained in each of 40 steps, with a prior that matters."""
        return cls(
            ensemble=20,
            prior_weight=10.0,
            bootstrap=0.5,
            trained="all",
            discount=0.99,
            gradient_steps=40,
        )

    @classmethod
    def minatar(cls) -> "BootDQN":
        """For MinAtar: ten heads on one torso, all trained on everything (Osband et al. 2016)."""
        return cls(**MINATAR, prior_weight=1.0, bootstrap=1.0, trained="all")

    @classmethod
    def atari(cls) -> "BootDQN":
        """For Atari: ten heads on one torso, all trained on everything (Osband et al. 2016)."""
        return cls(**ATARI, prior_weight=0.0, bootstrap=1.0, trained="all")

    @classmethod
    def classic(cls) -> "BootDQN":
        """For small problems with vectors as observations: ours."""
        return cls(**CLASSIC, prior_weight=3.0, bootstrap=1.0, trained="all")

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> BootDQNState:
        ensemble_key, prior_key, mask_key = jax.random.split(key, 3)
        prior = self._fixed(spec, prior_key) if self.prior_weight > 0 else None
        masks = jax.random.randint(mask_key, (), 0, jnp.iinfo(jnp.int32).max)
        return BootDQNState(self._q_network(spec, ensemble_key, self.ensemble), prior, masks)

    def sample(self, state: BootDQNState, key: Key[Array, ""]) -> Int[Array, " 1"]:
        """One head."""
        return jax.random.randint(key, (1,), 0, self.ensemble)

    def several(self, state: BootDQNState, key, count):
        """Every head, where that many are asked for: then nothing is left to chance."""
        if self.ensemble > count:
            return super().several(state, key, count)
        return jnp.arange(self.ensemble)[:, None], self.ensemble

    def greedy(self, state: BootDQNState) -> Int[Array, " heads"]:
        """All heads, whose mean is the best guess."""
        return jnp.arange(self.ensemble)

    def q(self, state, index, obs):
        """The mean over the heads of the index: one in training, all in a test."""
        return jnp.mean(self._q(state, obs, index), axis=-2)

    def observe(self, state, transitions, mask):
        """Nothing: which head may see a transition follows from its number."""
        return state

    def learn(self, state, batch, key):
        """Q learning of one head, or of all, each on the transitions that are in its bootstrap."""
        heads = self.greedy(state) if self.trained == "all" else self.sample(state, key)
        next_q = state.ensemble.next_q(batch.next_obs, heads)
        next_q = jnp.max(next_q + self._prior(state, batch.next_obs, heads), axis=-1)
        targets = td_target(batch, self.discount, next_q)
        if state.prior is not None:  # f_k learns what its prior does not already say
            targets -= self._prior_taken(state, batch, heads)
        ensemble, metrics = state.ensemble.learn(
            batch, targets, self.loss, heads, self._mask(state, batch.number, heads)
        )
        return BootDQNState(ensemble, state.prior, state.masks), metrics

    def _q(self, state, obs, heads) -> Float[Array, "*b g actions"]:
        return state.ensemble.q(obs, heads) + self._prior(state, obs, heads)

    def _prior(self, state, obs, heads) -> Float[Array, "*b g actions"] | float:
        """prior_weight · p_k(s, ·)."""
        if state.prior is None:
            return 0.0
        if isinstance(state.prior, QNet):
            rows, lead = state.prior.torso.flatten(obs)
            return state.prior(rows).reshape(*lead, self.ensemble, -1)[..., heads, :]
        return state.prior[obs[..., None], heads]

    def _prior_taken(self, state, batch, heads) -> Float[Array, "b g"]:
        """prior_weight · p_k(s, a)."""
        if isinstance(state.prior, QNet):
            taken = batch.action[:, None, None]
            return jnp.take_along_axis(self._prior(state, batch.obs, heads), taken, axis=-1)[..., 0]
        return state.prior[batch.obs[:, None], heads, batch.action[:, None]]

    def _fixed(self, spec: EnvSpec, key: Key[Array, ""]) -> Float[Array, "n heads actions"] | QNet:
        network = self._q_network(spec, key, self.ensemble)
        if isinstance(network, DeepQ):
            net = network.trained.net
            return eqx.tree_at(lambda net: net.W, net, self.prior_weight * net.W)
        states = jnp.arange(spec.num_states)
        return self.prior_weight * jax.lax.map(network.q, states, batch_size=1024)

    def _mask(self, state, number, heads) -> Float[Array, "b g"]:
        """1 where a transition is in a head's bootstrap: the same coin every time it is asked."""
        if self.bootstrap == 1:
            return jnp.ones((len(number), len(heads)))
        key = jax.random.key(state.masks)

        def coin(number, head):
            coin_key = jax.random.fold_in(jax.random.fold_in(key, number), head)
            return jax.random.bernoulli(coin_key, self.bootstrap).astype(jnp.float32)

        return jax.vmap(lambda number: jax.vmap(lambda head: coin(number, head))(heads))(number)
