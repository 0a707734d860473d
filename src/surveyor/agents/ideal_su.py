"""Idealised Successor Uncertainties: the exact model of the paper's section 4."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from surveyor.agents.options import Size
from surveyor.agents.psrl import MDPAgent, MDPState
from surveyor.inference.mdp import FREE, EmpiricalMDP, Pairs
from surveyor.inference.policies import greedy_policy
from surveyor.types import PRNG, Batch, EnvSpec, QPosterior, Schedule, States, Update


class IdealSUState(MDPState):
    """Everything observed so far, and the reference policy π."""

    policy: Pairs


class IdealSU(MDPAgent[IdealSUState]):
    """SU as the theory has it: φ one-hot, ψ converged, Q ~ N(Ψμ, ΨΣΨᵀ) exactly.

    With one-hot features the rewards of all state-actions are independent, with variance
    ν(n) = (1/θ + n/β)⁻¹ after n visits, and ψ^π follows from the transition frequencies seen. A
    draw of w is a draw of all rewards, and Ψw is the value of π under them, so that Ψ is never
    formed: the index is that Q table. After an episode π(s) ← E[greedy policy of a sampled Q^π].
    """

    policy_samples: Size = 20
    """Draws for E[greedy]."""
    gradient_steps: int = 1
    """Updates of the reference policy after every episode."""

    @property
    def schedule(self) -> Schedule:
        return Schedule(updates=self.gradient_steps)

    def init(self, spec: EnvSpec, key: PRNG) -> IdealSUState:
        """Return a model that has seen nothing, and a uniform reference policy."""
        uniform = jnp.full((spec.num_states, spec.num_actions), 1 / spec.num_actions)
        return IdealSUState(EmpiricalMDP.empty(spec, self.successors), spec.horizon, uniform)

    def sample(self, state: IdealSUState, key: PRNG) -> Pairs:
        """Draw w ~ N(μ, Σ) and return Ψw, the value of π under sampled rewards."""
        noise = jax.random.normal(key, state.policy.shape)
        return self._evaluate(state, self.mean(state) + jnp.sqrt(self.variance(state)) * noise)

    def greedy(self, state: IdealSUState) -> Pairs:
        """Return Ψμ."""
        return self._evaluate(state, self.mean(state))

    def learn(self, state: IdealSUState, batch: Batch, key: PRNG) -> tuple[IdealSUState, Update]:
        """π(s) ← E[greedy policy of a sampled Q^π]."""
        keys = jax.random.split(key, self.policy_samples)
        samples = jax.vmap(partial(self.sample, state))(keys)
        policy = jnp.mean(greedy_policy(samples), axis=0)
        return dataclasses.replace(state, policy=policy), Update()

    def q_posterior(self, state: IdealSUState, obs: States, key: PRNG | None = None) -> QPosterior:
        """Equation 3, exactly: N(Ψμ, ΨΣΨᵀ)."""
        mean = self.greedy(state)[obs]
        psi = self.successor_features(state, obs)
        return QPosterior(mean, (psi * self.variance(state).reshape(-1)) @ psi.T)

    def successor_features(self, state: IdealSUState, obs: States) -> Float[Array, "rows pairs"]:
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

    def _evaluate(self, state: IdealSUState, reward: Pairs) -> Pairs:
        """Return Q of the reference policy under these rewards and the frequencies seen."""
        model, policy = state.model, state.policy.T
        value = lambda q: jnp.sum(policy * q, axis=0)  # noqa: E731
        return model.solve(reward, model.frequencies, value, self.discount, state.horizon)
