"""Bayesian DQN: Azizzadenesheli, Brunskill and Anandkumar (2018), https://arxiv.org/abs/1802.04412."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from surveyor.agents import check
from surveyor.agents.qlearner import QLearner
from surveyor.inference.posterior import ActionPosteriors
from surveyor.models.losses import td_target
from surveyor.models.qnetwork import DeepQ, TabularQ
from surveyor.types import EnvSpec, QPosterior


class BDQNState(eqx.Module):
    """What BDQN has learnt so far."""

    network: TabularQ | DeepQ
    posteriors: ActionPosteriors


class BDQN(QLearner):
    """Bayesian linear regression of Q on the last hidden layer, for each action apart.

    Q(s, a) = ⟨φ(s), w_a⟩ with w_a ~ N(ŵ_a, Σ_a), where Σ_a is the posterior covariance after every
    φ(s) in which a was taken, and ŵ_a is fitted to the targets of Q learning together with φ. The
    index is one draw of all w_a. ŵ starts at zero, the prior's mean, and there is no output bias.

    The regression knows how often an action was taken in states like this one, not what may lie
    behind it: uncertainty does not come back from later states, and the tree defeats it.
    """

    closed_form: ClassVar[bool] = True

    theta: float = 1.0
    """Prior variance of each weight."""
    beta: float = 1.0
    """Likelihood variance of a target."""
    zeta: float = 1.0
    """Decay of what is known, at every step."""

    def __check_init__(self):
        check.positive(self, "theta", "beta")
        check.share(self, "zeta")

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> BDQNState:
        prior = ActionPosteriors.prior(
            spec.num_actions, self.hidden, self.theta, self.beta, self.zeta
        )
        return BDQNState(self._q_network(spec, key, outputs=False), prior)

    def sample(self, state: BDQNState, key: Key[Array, ""]) -> Float[Array, "actions h"]:
        """w_a ~ N(ŵ_a, Σ_a) for every action."""
        return state.posteriors.sample(key, self.greedy(state))

    def greedy(self, state: BDQNState) -> Float[Array, "actions h"]:
        """ŵ."""
        return state.network.weights[0].T

    def q(self, state, index, obs):
        """⟨φ(s), w_a⟩."""
        return self._features(state, obs) @ index.T

    def observe(self, state, transitions, mask):
        """Λ_a ← ζΛ_a + β⁻¹ φ(s) φ(s)ᵀ, for the action that was taken."""
        features = self._features(state, transitions.obs)
        posteriors = state.posteriors.update(features, transitions.action, mask)
        return BDQNState(state.network, posteriors)

    def learn(self, state, batch, key):
        """One step of Q learning for φ and ŵ."""
        next_q = jnp.max(state.network.next_q(batch.next_obs), axis=-1)
        targets = td_target(batch, self.discount, next_q)
        network, metrics = state.network.learn(batch, targets, self.loss)
        return BDQNState(network, state.posteriors), metrics

    def q_posterior(self, state, obs, key=None):
        """Exactly: independent between actions, joint between states."""
        features = self._features(state, obs)
        mean = features @ self.greedy(state).T
        return QPosterior(mean, state.posteriors.joint_covariance(features))

    def diagnose(self, state, obs):
        """Q, and the size and condition of the belief."""
        return {**super().diagnose(state, obs), **state.posteriors.diagnose()}

    def _features(self, state, obs) -> Float[Array, "*b h"]:
        return state.network.features(obs)[..., 0, :]
