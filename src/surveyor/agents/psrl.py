"""Posterior sampling for reinforcement learning: Strens (2000), Osband et al. (2013)."""

import dataclasses
from functools import partial
from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from surveyor.agents.base import Agent, Q
from surveyor.agents.options import Positive, Share, Size
from surveyor.inference.mdp import EmpiricalMDP, Pairs, Slots
from surveyor.types import PRNG, Batch, EnvSpec, Mask, States, Transition, Update


class MDPState(eqx.Module):
    """Everything observed so far."""

    model: EmpiricalMDP
    horizon: int = eqx.field(static=True)


State = TypeVar("State", bound=MDPState)


class MDPAgent(Agent[State, Pairs]):
    """A belief about the rewards of an MDP whose transitions are counted; the index is a Q table.

    Rewards have a normal prior N(0, θ) and likelihood variance β.
    """

    by_episodes: ClassVar[bool] = True

    theta: Positive = 1.0
    """Prior variance θ of each mean reward."""
    beta: Positive = 1e-3
    """Likelihood variance β of a reward."""
    successors: Size = 8
    """Different successors of a state and action that are remembered."""
    discount: Share = 1.0
    """γ."""

    def q(self, state: State, index: Pairs, obs: States) -> Q:
        return index[obs]

    def observe(self, state: State, transitions: Transition, mask: Mask) -> State:
        return dataclasses.replace(state, model=state.model.add(transitions, mask))

    def variance(self, state: State) -> Pairs:
        """Return ν(n) = (1/θ + n/β)⁻¹ of every mean reward, after n visits."""
        return 1.0 / (1.0 / self.theta + state.model.visits / self.beta)

    def mean(self, state: State) -> Pairs:
        """Return the posterior mean of every mean reward."""
        return self.variance(state) * state.model.reward / self.beta


class PSRL(MDPAgent[MDPState]):
    """A belief about the MDP itself: sample one, solve it, follow its optimal policy.

    The next state has a Dirichlet belief over the successors seen and one outcome more, somewhere
    new, of concentration α, which is worth nothing beyond its reward. The index is the sampled
    MDP's Q table, solved for the horizon.

    This is the gold standard that randomised value functions approximate; it needs a table.
    """

    alpha: Positive = 1e-3
    """Concentration of the Dirichlet on a new successor."""

    def init(self, spec: EnvSpec, key: PRNG) -> MDPState:
        return MDPState(EmpiricalMDP.empty(spec, self.successors), spec.horizon)

    def sample(self, state: MDPState, key: PRNG) -> Pairs:
        """Draw an MDP from the posterior and return its Q table."""
        shape = state.model.visits.shape
        reward_key, transition_key = jax.random.split(key)
        noise = jax.random.normal(reward_key, (state.model.visits.size,)).reshape(shape)
        reward = self.mean(state) + jnp.sqrt(self.variance(state)) * noise
        probability = state.model.sample_transitions(transition_key, self.alpha)
        return self._solve(state, reward, probability)

    def greedy(self, state: MDPState) -> Pairs:
        """Return the Q table of the mean MDP."""
        model = state.model
        probability = model.count / (model.visits + self.alpha)[..., None]
        return self._solve(state, self.mean(state), probability)

    def learn(self, state: MDPState, batch: Batch, key: PRNG) -> tuple[MDPState, Update]:
        """Change nothing: the posterior is exact."""
        return state, Update()

    def _solve(self, state: MDPState, reward: Pairs, probability: Slots) -> Pairs:
        best = partial(jnp.max, axis=0)
        return state.model.solve(reward, probability, best, self.discount, state.horizon)
