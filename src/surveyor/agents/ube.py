"""The Uncertainty Bellman Equation: O'Donoghue et al. (2018), https://arxiv.org/abs/1709.05380."""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, Shaped

from surveyor.agents import check
from surveyor.agents.qlearner import QLearner
from surveyor.inference.posterior import ActionPosteriors
from surveyor.models.deep import Dense
from surveyor.models.losses import alive, penalty, td_target, weighted_mean
from surveyor.models.qnetwork import DeepQ, TabularQ
from surveyor.models.tables import RowAdam, Rows, Table
from surveyor.types import EnvSpec, QPosterior


class TabularU(eqx.Module):
    """softplus⁻¹ of u(s, ·), a row for each state."""

    table: Table
    step: Int[Array, ""]
    learning_rate: float = eqx.field(static=True)

    def fetch(self, obs: Int[Array, "*b"]) -> tuple[Float[Array, "*b actions"], Rows]:
        """The parameters that a step on these states trains, and the rows with Adam's moments."""
        rows = self._adam.fetch(self.table, obs, self.step)
        return rows.value, rows

    def value(self, parameters: Any, features: Any) -> Float[Array, "*b actions"]:
        """u(s, ·), as a function of those."""
        return jax.nn.softplus(parameters)

    def update(self, obs: Int[Array, " b"], rows: Any, gradient: Any) -> "TabularU":
        """One step of Adam."""
        table = self._adam.update(self.table, obs, rows, gradient, self.step)
        return TabularU(table, self.step + 1, self.learning_rate)

    @property
    def _adam(self) -> RowAdam:
        return RowAdam(self.learning_rate)


class DeepU(eqx.Module):
    """u(s, ·) as a layer on the hidden layer of the Q network, which it does not train."""

    layer: Dense
    moments: optax.OptState
    learning_rate: float = eqx.field(static=True)

    def fetch(self, obs: Array) -> tuple[Dense, None]:
        """The layer."""
        return self.layer, None

    def value(self, parameters: Any, features: Float[Array, "*b h"]) -> Array:
        """u(s, ·), as a function of it."""
        rows = jax.lax.stop_gradient(features).reshape(-1, features.shape[-1])
        return jax.nn.softplus(parameters(rows.T)).T.reshape(*features.shape[:-1], -1)

    def update(self, obs: Array, fetched: Any, gradient: Any) -> "DeepU":
        """One step of Adam."""
        adam = optax.adam(self.learning_rate)
        updates, moments = adam.update(gradient, self.moments)
        return DeepU(eqx.apply_updates(self.layer, updates), moments, self.learning_rate)


class UBEState(eqx.Module):
    """What UBE has learnt so far."""

    network: TabularQ | DeepQ
    u: TabularU | DeepU
    posteriors: ActionPosteriors


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

    closed_form: ClassVar[bool] = True

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
        network = self._q_network(spec, key, outputs=False)
        return UBEState(network, self._first_u(spec), prior)

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
        key, number = jax.random.key(index.seed), _number(obs, u.ndim - 1)
        draw = jax.vmap(lambda s: jax.random.normal(jax.random.fold_in(key, s), u.shape[-1:]))
        return mean + index.scale * jnp.sqrt(u) * draw(number.reshape(-1)).reshape(u.shape)

    def observe(self, state, transitions, mask):
        """Λ_a ← ζΛ_a + β⁻¹ φ(s) φ(s)ᵀ, for the action that was taken."""
        posteriors = state.posteriors.update(
            self._features(state, transitions.obs), transitions.action, mask
        )
        return eqx.tree_at(lambda state: state.posteriors, state, posteriors)

    def learn(self, state, batch, key):
        """One step of Q learning, and one of the Bellman equation of u."""
        next_q = state.network.next_q(batch.next_obs)[..., 0, :]
        next_u = self.uncertainty(state, batch.next_obs)
        noise = jax.random.normal(key, next_q.shape)
        sampled = jnp.argmax(next_q + self.scale * jnp.sqrt(next_u) * noise, axis=-1)
        features = self._features(state, batch.obs)
        target = self._bellman(state, batch, features, next_u, sampled)
        parameters, rest = state.u.fetch(batch.obs)

        def u_loss(parameters):
            u = state.u.value(parameters, features)
            u = jnp.take_along_axis(u, batch.action[:, None], axis=1)[:, 0]
            return weighted_mean(penalty(u - target, self.loss), batch)

        loss, gradient = jax.value_and_grad(u_loss)(parameters)
        targets = td_target(batch, self.discount, jnp.max(next_q, axis=-1, keepdims=True))
        network, metrics = state.network.learn(batch, targets, self.loss)
        u = state.u.update(batch.obs, rest, gradient)
        return UBEState(network, u, state.posteriors), {**metrics, "u_loss": loss}

    def q_posterior(self, state, obs, key=None):
        """Exactly: independent everywhere, with variance scale² u."""
        variance = self.scale**2 * self.uncertainty(state, obs)
        return QPosterior(self._q(state, obs), jnp.diag(variance.reshape(-1)))

    def diagnose(self, state, obs):
        """Q, and the size and condition of the belief."""
        return {**super().diagnose(state, obs), **state.posteriors.diagnose()}

    def uncertainty(self, state: UBEState, obs: Shaped[Array, "..."]) -> Float[Array, "*b actions"]:
        """u(s, ·)."""
        features = self._features(state, obs) if isinstance(state.u, DeepU) else jnp.zeros(())
        return state.u.value(state.u.fetch(obs)[0], features)

    def _bellman(self, state, batch, features, next_u, next_action) -> Float[Array, " b"]:
        """ν(s, a) + γ² u(s', a'); over several steps with ν of those between as well."""
        local = _of(state.posteriors.variance(features), batch.action)
        if batch.trail is not None:
            between = state.posteriors.variance(self._features(state, batch.trail.obs))
            between = batch.trail.discount**2 * _of(between, batch.trail.action)
            local = local + jnp.sum(between, axis=1)
        return local + alive(batch, self.discount) ** 2 * _of(next_u, next_action)

    def _first_u(self, spec: EnvSpec) -> TabularU | DeepU:
        start = self.u_init + np.log(-np.expm1(-self.u_init))  # softplus of it is u_init
        if spec.tabular:
            table = Table.create(jnp.full((spec.num_states, spec.num_actions), start))
            return TabularU(table, jnp.zeros((), jnp.int32), self.learning_rate)
        bias = jnp.full(spec.num_actions, jnp.float32(start))
        layer = Dense(jnp.zeros((spec.num_actions, self.hidden)), bias)
        return DeepU(
            layer,
            optax.adam(self.learning_rate).init(eqx.filter(layer, eqx.is_array)),
            self.learning_rate,
        )

    def _features(self, state, obs) -> Float[Array, "*b h"]:
        return state.network.features(obs)[..., 0, :]

    def _q(self, state, obs) -> Float[Array, "*b actions"]:
        return state.network.q(obs)[..., 0, :]


def _of(values: Float[Array, "*b actions"], action: Int[Array, "*b"]) -> Float[Array, "*b"]:
    return jnp.take_along_axis(values, action[..., None], axis=-1)[..., 0]


def _number(obs: Shaped[Array, "..."], lead: int) -> Int[Array, "*b"]:
    """A number for each observation, which is equal only where observations are: its own if it is
    one, else a sum of its bits, which whole numbers add up to the same in any order."""
    if jnp.issubdtype(obs.dtype, jnp.integer) and obs.ndim == lead:
        return obs
    flat = obs.reshape(*obs.shape[:lead], -1).astype(jnp.float32)
    bits = jax.lax.bitcast_convert_type(flat, jnp.int32)
    weights = 2 * jax.random.bits(jax.random.key(0), flat.shape[-1:]).astype(jnp.int32) + 1
    return jnp.sum(bits * weights, axis=-1)
