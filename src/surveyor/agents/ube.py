"""The Uncertainty Bellman Equation: O'Donoghue et al. (2018), https://arxiv.org/abs/1709.05380."""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents.base import Q
from surveyor.agents.bdqn import LastLayer, QBelief
from surveyor.agents.options import Positive
from surveyor.inference.policies import allowed
from surveyor.models.losses import Each, bootstrap_factor, penalty, td_target, weighted_mean
from surveyor.models.uncertainty import DeepU, Features, TabularU, UncertaintyModel
from surveyor.types import PRNG, Batch, EnvSpec, Obs, QPosterior, Update


class UBEState(QBelief):
    """Everything that UBE changes."""

    u: UncertaintyModel


class Noise(NamedTuple):
    """UBE's index: a seed that gives every state and action its own noise, and its scale."""

    seed: Int[Array, ""]
    scale: Float[Array, ""]


class UBE(LastLayer[UBEState, Noise]):
    """A variance for every Q value, propagated by a Bellman equation of its own.

    u(s, a) = ν(s, a) + γ² u(s', a') bounds the variance of Q(s, a), where ν(s, a) = φ(s)ᵀΣ_aφ(s) is
    the local uncertainty of Bayesian linear regression on the Q network's hidden layer. It acts on
    Q̂(s, a) + scale · √u(s, a) · z with independent z ~ N(0, 1) for every state and action: a
    factorised and symmetric belief, so that proposition 1 of the Successor Uncertainties paper
    applies, and no variance, however well propagated, solves a tree sooner than a coin would.

    u is a softplus, so it is never negative and its root never NaN. Q̂ starts at zero.
    """

    random_q: ClassVar[bool] = True

    scale: Positive = 1.0
    """Factor on √u."""
    u_init: Positive = 1.0
    """Start of u, for every state and action."""

    def init(self, spec: EnvSpec, key: PRNG) -> UBEState:
        """Return a network with Q = 0, u at its start, and the prior of every action."""
        network = self.q_model(spec, key, outputs=False)
        if self.tables(spec):
            u = TabularU.create(spec, self.u_init, self.learning_rate)
        else:
            width = network.weights.shape[1]
            u = DeepU.create(spec, self.u_init, width, self.learning_rate)
        return UBEState(network, self.prior(spec, network), u)

    def sample(self, state: UBEState, key: PRNG) -> Noise:
        """Draw the noise of a whole episode."""
        seed = jax.random.randint(key, (), 0, jnp.iinfo(jnp.int32).max)
        return Noise(seed, jnp.float32(self.scale))

    def greedy(self, state: UBEState) -> Noise:
        """Return no noise."""
        return Noise(jnp.zeros((), jnp.int32), jnp.zeros(()))

    def q(self, state: UBEState, index: Noise, obs: Obs) -> Q:
        """Return Q̂ + scale · √u · z, with the same z for the same index and state."""
        mean, u = state.network.q(obs)[..., 0, :], self.uncertainty(state, obs)
        key, number = jax.random.key(index.seed), _number(obs, u.ndim - 1)
        draw = jax.vmap(lambda s: jax.random.normal(jax.random.fold_in(key, s), u.shape[-1:]))
        return mean + index.scale * jnp.sqrt(u) * draw(number.reshape(-1)).reshape(u.shape)

    def learn(self, state: UBEState, batch: Batch, key: PRNG) -> tuple[UBEState, Update]:
        """Take one step of Q learning, and one of the Bellman equation of u."""
        next_q = allowed(state.network.target_q(batch.next_obs)[..., 0, :], batch.next_legal)
        next_u = self.uncertainty(state, batch.next_obs)
        noise = jax.random.normal(key, next_q.shape)
        sampled = jnp.argmax(next_q + self.scale * jnp.sqrt(next_u) * noise, axis=-1)
        features = self._features(state, batch.obs)
        target = self._bellman(state, batch, features, _of(next_u, sampled))

        def loss(u: Float[Array, "b actions"]) -> Float[Array, ""]:
            return weighted_mean(penalty(_of(u, batch.action) - target, self.loss), batch)

        u, u_loss = state.u.fit(batch.obs, features, loss)
        targets = td_target(batch, self.discount, jnp.max(next_q, axis=-1, keepdims=True))
        network, update = state.network.fit(batch, targets, self.loss)
        metrics = {**update.metrics, "u_loss": u_loss}
        return UBEState(network, state.posteriors, u), Update(metrics, update.errors)

    def q_posterior(self, state: UBEState, obs: Obs, key: PRNG | None = None) -> QPosterior:
        """Return the exact belief: independent everywhere, with variance scale² u."""
        variance = self.scale**2 * self.uncertainty(state, obs)
        return QPosterior(state.network.q(obs)[..., 0, :], jnp.diag(variance.reshape(-1)))

    def uncertainty(self, state: UBEState, obs: Obs) -> Q:
        """Return u(s, ·)."""
        return state.u.value(obs, self._features(state, obs))

    def _bellman(self, state: UBEState, batch: Batch, features: Features, next_u: Each) -> Each:
        """Return ν(s, a) + γ² u(s', a'); over several steps with ν of those between as well."""
        local = _of(state.posteriors.variance(features), batch.action)
        if (trail := batch.trail) is not None:
            between = state.posteriors.variance(self._features(state, trail.obs))
            local += jnp.sum(trail.discount**2 * _of(between, trail.action), axis=1)
        return local + bootstrap_factor(batch, self.discount) ** 2 * next_u


def _of(values: Q, action: Int[Array, "*b"]) -> Each:
    return jnp.take_along_axis(values, action[..., None], axis=-1)[..., 0]


def _number(obs: Obs, lead: int) -> Int[Array, "*b"]:
    """Return a number for each observation, equal where observations are.

    A state's own number, or else a weighted sum of its bits, exact in integers in any order.
    """
    if jnp.issubdtype(obs.dtype, jnp.integer) and obs.ndim == lead:
        return obs
    flat = obs.reshape(*obs.shape[:lead], -1).astype(jnp.float32)
    bits = jax.lax.bitcast_convert_type(flat, jnp.int32)
    weights = 2 * jax.random.bits(jax.random.key(0), flat.shape[-1:]).astype(jnp.int32) + 1
    return jnp.sum(bits * weights, axis=-1)
