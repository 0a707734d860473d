"""Bayesian DQN: Azizzadenesheli, Brunskill and Anandkumar (2018), https://arxiv.org/abs/1802.04412."""

import dataclasses
from typing import ClassVar, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.agents.base import Index, Q
from surveyor.agents.learner import QLearner
from surveyor.agents.options import Positive, Share
from surveyor.inference.policies import allowed
from surveyor.inference.posterior import ActionPosteriors, Posterior
from surveyor.models.losses import per_head, td_target
from surveyor.models.q import QModel
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Metrics, Obs, QPosterior, Transition, Update

Weights = Float[Array, "actions h"]


class QBelief(eqx.Module):
    """A Q network, and a belief about the weights of its last layer."""

    network: QModel
    posteriors: ActionPosteriors


State = TypeVar("State", bound=QBelief)


class LastLayer(QLearner[State, Index]):
    """Regression of Q on the last hidden layer: its prior, and its posteriors Σ_a."""

    closed_form: ClassVar[bool] = True

    theta: Positive = 1.0
    """Prior variance of each weight."""
    beta: Positive = 1.0
    """Likelihood variance of a target."""
    zeta: Share = 1.0
    """Decay of each Λ_a at every step."""

    def prior(self, spec: EnvSpec, network: QModel) -> ActionPosteriors:
        """Return the prior of every action, on the hidden layer of a network."""
        width = network.weights.shape[1]
        one = Posterior.prior(width, self.theta, self.beta, self.zeta)
        return ActionPosteriors.prior(one, spec.num_actions)

    def observe(self, state: State, transitions: Transition, mask: Mask) -> State:
        """Λ_a ← ζΛ_a + β⁻¹ φ(s) φ(s)ᵀ, for the action that was taken."""
        features = self._features(state, transitions.obs)
        posteriors = state.posteriors.update(features, transitions.action, mask)
        return dataclasses.replace(state, posteriors=posteriors)

    def diagnose(self, state: State, obs: Obs) -> Metrics:
        """Return mean Q, and size and condition of the posteriors."""
        return {**super().diagnose(state, obs), **state.posteriors.diagnose()}

    def _features(self, state: State, obs: Obs) -> Float[Array, "*b h"]:
        return state.network.features(obs)[..., 0, :]


class BDQN(LastLayer[QBelief, Weights]):
    """Bayesian linear regression of Q on the last hidden layer, for each action apart.

    Q(s, a) = ⟨φ(s), w_a⟩ with w_a ~ N(ŵ_a, Σ_a), where Σ_a is the posterior covariance after every
    φ(s) in which a was taken, and ŵ_a is fitted to the targets of Q learning together with φ. The
    index is one draw of all w_a. ŵ starts at zero, the prior's mean, and there is no output bias.

    The regression knows how often an action was taken in states like this one, not what may lie
    behind it: uncertainty does not come back from later states, and the tree defeats it.
    """

    def init(self, spec: EnvSpec, key: PRNG) -> QBelief:
        """Return a network with Q = 0, and the prior of every action."""
        network = self.q_model(spec, key, outputs=False)
        return QBelief(network, self.prior(spec, network))

    def sample(self, state: QBelief, key: PRNG) -> Weights:
        """Draw w_a ~ N(ŵ_a, Σ_a) for every action."""
        return state.posteriors.sample(key, self.greedy(state))

    def greedy(self, state: QBelief) -> Weights:
        """Return ŵ."""
        return state.network.weights[0].T

    def q(self, state: QBelief, index: Weights, obs: Obs) -> Q:
        """Return ⟨φ(s), w_a⟩."""
        return self._features(state, obs) @ index.T

    def learn(self, state: QBelief, batch: Batch, key: PRNG) -> tuple[QBelief, Update]:
        """Take one step of Q learning for φ and ŵ."""
        next_q = allowed(state.network.target_q(batch.next_obs), per_head(batch))
        next_q = jnp.max(next_q, axis=-1)
        targets = td_target(batch, self.discount, next_q)
        network, update = state.network.fit(batch, targets, self.loss)
        return QBelief(network, state.posteriors), update

    def q_posterior(self, state: QBelief, obs: Obs, key: PRNG | None = None) -> QPosterior:
        """Return the exact belief: independent between actions, joint between states."""
        features = self._features(state, obs)
        mean = features @ self.greedy(state).T
        return QPosterior(mean, state.posteriors.joint_covariance(features))
