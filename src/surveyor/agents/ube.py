"""The Uncertainty Bellman Equation: O'Donoghue et al. (2018), https://arxiv.org/abs/1709.05380."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from surveyor.agents import check
from surveyor.agents.qlearner import QLearner
from surveyor.losses import penalty, td_target
from surveyor.optim import RowAdam, Table
from surveyor.posterior import ActionPosteriors
from surveyor.qnetwork import QNetwork, QState
from surveyor.types import EnvSpec, QPosterior


class UBEState(eqx.Module):
    """What UBE has learnt so far."""

    network: QState
    u: Table
    """softplus⁻¹ of u(s, ·), a row for each state."""
    posteriors: ActionPosteriors
    step: Int[Array, ""]


class Noise(NamedTuple):
    """UBE's index: a seed that gives every state and action its own noise, and its scale."""

    seed: Int[Array, ""]
    scale: Float[Array, ""]


class UBE(QLearner):
    """A variance for every Q value, propagated by a Bellman equation of its own.

    u(s, a) = ν(s, a) + γ² u(s', a') bounds the variance of Q(s, a), where ν(s, a) = φ(s)ᵀΣ_aφ(s) is
    the local uncertainty of Bayesian linear regression on the Q network's hidden layer. It acts on
    Q̂(s, a) + scale · √u(s, a) · z with independent z ~ N(0, 1) for every state and action: a
    factorised and symmetric belief, so that proposition 1 of the Successor Uncertainties paper
    applies, and no variance, however well propagated, solves a tree sooner than a coin would.

    u is a softplus, so it is never negative and its root never NaN. Q̂ starts at zero.
    """

    scale: float = 1.0
    """The factor on √u."""
    theta: float = 1.0
    """Prior variance of each weight."""
    beta: float = 1.0
    """Likelihood variance of a target."""
    zeta: float = 1.0
    """Decay of what is known, at every step."""
    u_init: float = 1.0
    """What u starts at, for every state and action."""

    def __check_init__(self):
        check.positive(self, "scale", "theta", "beta", "u_init")
        check.share(self, "zeta")

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> UBEState:
        prior = ActionPosteriors.prior(
            spec.num_actions, self.hidden, self.theta, self.beta, self.zeta
        )
        start = self.u_init + np.log(-np.expm1(-self.u_init))  # softplus of it is u_init
        u = Table.create(jnp.full((spec.num_states, spec.num_actions), start))
        network = self._network.init(spec, key, outputs=False)
        return UBEState(network, u, prior, jnp.zeros((), jnp.int32))

    def sample(self, state: UBEState, key: Key[Array, ""]) -> Noise:
        """Noise for a whole episode."""
        seed = jax.random.randint(key, (), 0, jnp.iinfo(jnp.int32).max)
        return Noise(seed, jnp.float32(self.scale))

    def greedy(self, state: UBEState) -> Noise:
        """No noise."""
        return Noise(jnp.zeros((), jnp.int32), jnp.zeros(()))

    def q(self, state, index, obs):
        """Q̂ + scale · √u · z, with the same z whenever the index and the state are the same."""
        mean, u = self._q(state, obs), self.uncertainty(state, obs)
        key = jax.random.key(index.seed)
        draw = jax.vmap(lambda s: jax.random.normal(jax.random.fold_in(key, s), u.shape[-1:]))
        return mean + index.scale * jnp.sqrt(u) * draw(obs.reshape(-1)).reshape(u.shape)

    def observe(self, state, transitions, mask):
        """Λ_a ← ζΛ_a + β⁻¹ φ(s) φ(s)ᵀ, for the action that was taken."""
        posteriors = state.posteriors.update(
            self._features(state, transitions.obs), transitions.action, mask
        )
        return eqx.tree_at(lambda state: state.posteriors, state, posteriors)

    def learn(self, state, batch, key):
        """One step of Q learning, and one of the Bellman equation of u."""
        next_q, next_u = self._q(state, batch.next_obs), self.uncertainty(state, batch.next_obs)
        noise = jax.random.normal(key, next_q.shape)
        sampled = jnp.argmax(next_q + self.scale * jnp.sqrt(next_u) * noise, axis=-1)
        target = self._bellman(state, batch, next_u, sampled)
        rows = self._adam.fetch(state.u, batch.obs, state.step)

        def u_loss(rows):
            u = jnp.take_along_axis(jax.nn.softplus(rows), batch.action[:, None], axis=1)[:, 0]
            return jnp.mean(penalty(u - target, self.loss))

        loss, gradient = jax.value_and_grad(u_loss)(rows.value)
        u = self._adam.update(state.u, batch.obs, rows, gradient, state.step)
        network, q_loss = self._network.learn(
            state.network,
            batch.obs,
            batch.action,
            td_target(batch, self.discount, jnp.max(next_q, axis=-1, keepdims=True)),
            self.loss,
        )
        learnt = UBEState(network, u, state.posteriors, state.step + 1)
        return learnt, {"q_loss": q_loss, "u_loss": loss}

    def q_posterior(self, state, obs, key=None):
        """Exactly: independent everywhere, with variance scale² u."""
        variance = self.scale**2 * self.uncertainty(state, obs)
        return QPosterior(self._q(state, obs), jnp.diag(variance.reshape(-1)))

    def uncertainty(self, state: UBEState, obs: Int[Array, "*b"]) -> Float[Array, "*b actions"]:
        """u(s, ·)."""
        return jax.nn.softplus(self._adam.fetch(state.u, obs, state.step).value)

    def _bellman(self, state, batch, next_u, next_action) -> Float[Array, " b"]:
        """ν(s, a) + γ² u(s', a')."""
        local = state.posteriors.variance(self._features(state, batch.obs))
        local = jnp.take_along_axis(local, batch.action[:, None], axis=1)[:, 0]
        ahead = jnp.take_along_axis(next_u, next_action[:, None], axis=1)[:, 0]
        return local + self.discount**2 * (1.0 - batch.terminated) * ahead

    def _features(self, state, obs) -> Float[Array, "*b h"]:
        return self._network.features(state.network, obs)[..., 0, :]

    def _q(self, state, obs) -> Float[Array, "*b actions"]:
        return self._network.q(state.network, obs)[..., 0, :]

    @property
    def _adam(self) -> RowAdam:
        return RowAdam(self.learning_rate)

    @property
    def _network(self) -> QNetwork:
        return QNetwork(1, self.hidden, self.learning_rate)
