"""Idealised Successor Uncertainties: the exact model of the paper's section 4."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents.base import Agent
from surveyor.agents.options import require_at_least, require_positive, require_share
from surveyor.inference.mdp import FREE, EmpiricalMDP
from surveyor.inference.policies import greedy_policy
from surveyor.types import PRNG, Batch, EnvSpec, Mask, QPosterior, Schedule, Transition, Update


class IdealSUState(eqx.Module):
    """Everything observed so far, and the reference policy."""

    model: EmpiricalMDP
    policy: Float[Array, "n actions"]
    """π(s), the reference policy."""
    horizon: int = eqx.field(static=True)


class IdealSU(Agent[IdealSUState, Float[Array, "n actions"]]):
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
    """Different successors of a state and action that are remembered."""
    discount: float = 1.0
    """γ."""
    gradient_steps: int = 1
    """Updates of the reference policy after every episode."""

    def __check_init__(self):
        require_positive(self, "theta", "beta")
        require_share(self, "discount")
        require_at_least(self, 1, "successors", "policy_samples")

    @property
    def schedule(self) -> Schedule:
        """Updates of the reference policy after every episode; no batches."""
        return Schedule(updates=self.gradient_steps)

    def init(self, spec: EnvSpec, key: PRNG) -> IdealSUState:
        """Return a model that has seen nothing, and a uniform reference policy."""
        uniform = jnp.full((spec.num_states, spec.num_actions), 1 / spec.num_actions)
        return IdealSUState(EmpiricalMDP.empty(spec, self.successors), uniform, spec.horizon)

    def sample(self, state: IdealSUState, key: PRNG) -> Float[Array, "n actions"]:
        """Draw w ~ N(μ, Σ) and return Ψw, the value of π under sampled rewards."""
        noise = jax.random.normal(key, state.policy.shape)
        variance = self.variance(state)
        return self._evaluate(state, self._mean(state) + jnp.sqrt(variance) * noise)

    def greedy(self, state: IdealSUState) -> Float[Array, "n actions"]:
        """Return Ψμ."""
        return self._evaluate(state, self._mean(state))

    def q(
        self, state: IdealSUState, index: Float[Array, "n actions"], obs: Int[Array, "*b"]
    ) -> Float[Array, "*b actions"]:
        """Look up Ψw."""
        return index[obs]

    def observe(self, state: IdealSUState, transitions: Transition, mask: Mask) -> IdealSUState:
        """Count the transitions."""
        return IdealSUState(state.model.add(transitions, mask), state.policy, state.horizon)

    def learn(self, state: IdealSUState, batch: Batch, key: PRNG) -> tuple[IdealSUState, Update]:
        """π(s) ← E[greedy policy of a sampled Q^π]."""
        samples = jax.vmap(lambda key: self.sample(state, key))(
            jax.random.split(key, self.policy_samples)
        )
        policy = jnp.mean(greedy_policy(samples), axis=0)
        return IdealSUState(state.model, policy, state.horizon), Update()

    def q_posterior(
        self, state: IdealSUState, obs: Int[Array, " k"], key: PRNG | None = None
    ) -> QPosterior:
        """Equation 3, exactly: N(Ψμ, ΨΣΨᵀ)."""
        mean = self.greedy(state)[obs]
        psi = self.successor_features(state, obs)
        return QPosterior(mean, (psi * self.variance(state).reshape(-1)) @ psi.T)

    def variance(self, state: IdealSUState) -> Float[Array, "n actions"]:
        """Return ν, the diagonal of Σ."""
        return 1.0 / (1.0 / self.theta + state.model.visits / self.beta)

    def successor_features(
        self, state: IdealSUState, obs: Int[Array, " k"]
    ) -> Float[Array, "rows pairs"]:
        """Return ψ(s, a) of these states and all actions: expected visits of each pair."""
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

    def _evaluate(
        self, state: IdealSUState, reward: Float[Array, "n actions"]
    ) -> Float[Array, "n actions"]:
        """Return Q of the reference policy under these rewards and the frequencies seen."""
        model, policy = state.model, state.policy.T

        def value(q):
            return jnp.sum(policy * q, axis=0)

        return model.solve(reward, model.frequencies, value, self.discount, state.horizon)
