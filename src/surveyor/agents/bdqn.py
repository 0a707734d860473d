"""Bayesian DQN: Azizzadenesheli, Brunskill and Anandkumar (2018), https://arxiv.org/abs/1802.04412."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.agents.learner import QLearner
from surveyor.agents.options import require_positive, require_share
from surveyor.inference.action_posteriors import ActionPosteriors
from surveyor.models.losses import td_target
from surveyor.models.q import QModel
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Metrics, Obs, QPosterior, Transition, Update


class BDQNState(eqx.Module):
    """Everything that BDQN changes."""

    network: QModel
    posteriors: ActionPosteriors


class BDQN(QLearner[BDQNState, Float[Array, "actions h"]]):
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
    """Decay of each Λ_a at every step."""

    def __check_init__(self):
        require_positive(self, "theta", "beta")
        require_share(self, "zeta")

    def init(self, spec: EnvSpec, key: PRNG) -> BDQNState:
        """Return a network with Q = 0, and the prior of every action."""
        prior = ActionPosteriors.prior(
            spec.num_actions, self.hidden, self.theta, self.beta, self.zeta
        )
        return BDQNState(self.q_model(spec, key, outputs=False), prior)

    def sample(self, state: BDQNState, key: PRNG) -> Float[Array, "actions h"]:
        """Draw w_a ~ N(ŵ_a, Σ_a) for every action."""
        return state.posteriors.sample(key, self.greedy(state))

    def greedy(self, state: BDQNState) -> Float[Array, "actions h"]:
        """Return ŵ."""
        return state.network.weights[0].T

    def q(
        self, state: BDQNState, index: Float[Array, "actions h"], obs: Obs
    ) -> Float[Array, "*b actions"]:
        """Return ⟨φ(s), w_a⟩."""
        return self._features(state, obs) @ index.T

    def observe(self, state: BDQNState, transitions: Transition, mask: Mask) -> BDQNState:
        """Λ_a ← ζΛ_a + β⁻¹ φ(s) φ(s)ᵀ, for the action that was taken."""
        features = self._features(state, transitions.obs)
        posteriors = state.posteriors.update(features, transitions.action, mask)
        return BDQNState(state.network, posteriors)

    def learn(self, state: BDQNState, batch: Batch, key: PRNG) -> tuple[BDQNState, Update]:
        """Take one step of Q learning for φ and ŵ."""
        next_q = jnp.max(state.network.target_q(batch.next_obs), axis=-1)
        targets = td_target(batch, self.discount, next_q)
        network, update = state.network.fit(batch, targets, self.loss)
        return BDQNState(network, state.posteriors), update

    def q_posterior(self, state: BDQNState, obs: Obs, key: PRNG | None = None) -> QPosterior:
        """Return the exact belief: independent between actions, joint between states."""
        features = self._features(state, obs)
        mean = features @ self.greedy(state).T
        return QPosterior(mean, state.posteriors.joint_covariance(features))

    def diagnose(self, state: BDQNState, obs: Obs) -> Metrics:
        """Return mean Q, and size and condition of the posteriors."""
        return {**super().diagnose(state, obs), **state.posteriors.diagnose()}

    def _features(self, state: BDQNState, obs: Obs) -> Float[Array, "*b h"]:
        return state.network.features(obs)[..., 0, :]
