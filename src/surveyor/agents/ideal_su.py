"""Idealised Successor Uncertainties: the exact model of the paper's section 4."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from surveyor.agents import check
from surveyor.agents.base import Agent
from surveyor.inference.mdp import FREE, Model
from surveyor.types import EnvSpec, QPosterior


class IdealSUState(eqx.Module):
    """Everything seen so far, and the reference policy."""

    model: Model
    policy: Float[Array, "n actions"]
    """π(s), the reference policy."""
    horizon: int = eqx.field(static=True)


class IdealSU(Agent):
    """SU as the theory has it: φ one-hot, ψ converged, Q ~ N(Ψμ, ΨΣΨᵀ) exactly.

    With one-hot features the rewards of all state-actions are independent, with variance
    ν(n) = (1/θ + n/β)⁻¹ after n visits, and ψ^π follows from the transition frequencies seen. A
    draw of w is a draw of all rewards, and Ψw is the value of π under them, so that Ψ is never
    formed: the index is that Q table. After an episode π(s) ← E[greedy policy of a sampled Q^π].
    """

    by_episodes: ClassVar[bool] = True

    theta: float = 1.0
    """Prior variance θ of each weight, here of each mean reward."""
    beta: float = 1e-3
    """Likelihood variance β of a reward."""
    policy_samples: int = 20
    """Draws for E[greedy]."""
    successors: int = 8
    """How many different successors of a state and action are remembered."""
    discount: float = 1.0
    """γ."""
    gradient_steps: int = 1
    """Updates of the reference policy after every episode."""

    def __check_init__(self):
        check.positive(self, "theta", "beta")
        check.share(self, "discount")
        check.at_least(self, 1, "successors", "policy_samples")

    @classmethod
    def deterministic(cls) -> "IdealSU":
        """Where every action has one successor, as on tree and chain, one slot is enough."""
        return cls(successors=1)

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> IdealSUState:
        uniform = jnp.full((spec.num_states, spec.num_actions), 1 / spec.num_actions)
        return IdealSUState(Model.empty(spec, self.successors), uniform, spec.horizon)

    def sample(self, state: IdealSUState, key: Key[Array, ""]) -> Float[Array, "n actions"]:
        """Ψw with w ~ N(μ, Σ): the value of π under sampled rewards."""
        noise = jax.random.normal(key, state.policy.shape)
        variance = self.variance(state)
        return self._evaluate(state, self._mean(state) + jnp.sqrt(variance) * noise)

    def greedy(self, state: IdealSUState) -> Float[Array, "n actions"]:
        """Ψμ."""
        return self._evaluate(state, self._mean(state))

    def q(self, state, index, obs):
        """Looked up in Ψw."""
        return index[obs]

    def observe(self, state, transitions, mask):
        """Count."""
        return IdealSUState(state.model.add(transitions, mask), state.policy, state.horizon)

    def learn(self, state, batch, key):
        """π(s) ← E[greedy policy of a sampled Q^π]."""
        samples = jax.vmap(lambda key: self.sample(state, key))(
            jax.random.split(key, self.policy_samples)
        )
        best = (samples == jnp.max(samples, axis=-1, keepdims=True)).astype(jnp.float32)
        policy = jnp.mean(best / jnp.sum(best, axis=-1, keepdims=True), axis=0)
        return IdealSUState(state.model, policy, state.horizon), {}

    def q_posterior(self, state, obs, key=None):
        """Equation 3, exactly: N(Ψμ, ΨΣΨᵀ)."""
        mean = self.greedy(state)[obs]
        psi = self.successor_features(state, obs)
        return QPosterior(mean, (psi * self.variance(state).reshape(-1)) @ psi.T)

    def variance(self, state: IdealSUState) -> Float[Array, "n actions"]:
        """ν, the diagonal of Σ."""
        return 1.0 / (1.0 / self.theta + state.model.visits / self.beta)

    def successor_features(
        self, state: IdealSUState, obs: Int[Array, " k"]
    ) -> Float[Array, "rows pairs"]:
        """ψ(s, a) of these states and all actions: how often each pair is expected ahead."""
        n, actions = state.policy.shape
        where = jnp.where(state.model.successor == FREE, n, state.model.successor)
        flow = self.discount * state.model.frequencies

        def follow(start):
            def step(_, carry):
                total, now = carry
                arriving = jnp.zeros(n + 1).at[where].add(flow * now[..., None])[:n]
                now = arriving[:, None] * state.policy
                return total + now, now

            return jax.lax.fori_loop(0, state.horizon, step, (start, start))[0].reshape(-1)

        rows = obs[:, None] * actions + jnp.arange(actions)
        starts = jax.nn.one_hot(rows.reshape(-1), n * actions).reshape(-1, n, actions)
        return jax.lax.map(follow, starts)

    def _mean(self, state: IdealSUState) -> Float[Array, "n actions"]:
        return self.variance(state) * state.model.reward / self.beta

    def _evaluate(self, state: IdealSUState, reward) -> Float[Array, "n actions"]:
        """Q of the reference policy under these rewards and the transition frequencies seen."""
        model, policy = state.model, state.policy.T

        def value(q):
            return jnp.sum(policy * q, axis=0)

        return model.solve(reward, model.frequencies, value, self.discount, state.horizon)
