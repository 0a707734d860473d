"""Posterior sampling for reinforcement learning: Strens (2000), Osband et al. (2013)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents.base import Agent
from surveyor.agents.options import require_at_least, require_positive, require_share
from surveyor.inference.mdp import EmpiricalMDP
from surveyor.inference.sampling import log_gamma
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Transition, Update


class PSRLState(eqx.Module):
    """Everything observed so far."""

    model: EmpiricalMDP
    horizon: int = eqx.field(static=True)


class PSRL(Agent[PSRLState, Float[Array, "n actions"]]):
    """A belief about the MDP itself: sample one, solve it, follow its optimal policy.

    Rewards have a normal prior N(0, θ) and likelihood variance β. The next state has a Dirichlet
    belief over the successors seen and one outcome more, somewhere new, of concentration α, which
    is worth nothing beyond its reward. The index is the sampled MDP's Q table, solved for the
    horizon.

    This is the gold standard that randomised value functions approximate; it needs a table.
    """

    by_episodes: ClassVar[bool] = True

    theta: float = 1.0
    """Prior variance of a mean reward."""
    beta: float = 1e-3
    """Likelihood variance of a reward."""
    alpha: float = 1e-3
    """Concentration of the Dirichlet on a new successor."""
    successors: int = 8
    """Different successors of a state and action that are remembered."""
    discount: float = 1.0
    """γ."""

    def __check_init__(self):
        require_positive(self, "theta", "beta", "alpha")
        require_share(self, "discount")
        require_at_least(self, 1, "successors")

    def init(self, spec: EnvSpec, key: PRNG) -> PSRLState:
        """Return a model that has seen nothing."""
        return PSRLState(EmpiricalMDP.empty(spec, self.successors), spec.horizon)

    def sample(self, state: PSRLState, key: PRNG) -> Float[Array, "n actions"]:
        """Draw an MDP from the posterior and return its Q table."""
        model = state.model
        reward_key, transition_key = jax.random.split(key)
        noise = jax.random.normal(reward_key, (model.visits.size,)).reshape(model.visits.shape)
        reward = self._mean(model) + jnp.sqrt(self._variance(model)) * noise
        return self._solve(state, reward, self._transitions(model, transition_key))

    def greedy(self, state: PSRLState) -> Float[Array, "n actions"]:
        """Return the Q table of the mean MDP."""
        model = state.model
        probability = model.count / (model.visits + self.alpha)[..., None]
        return self._solve(state, self._mean(model), probability)

    def q(
        self, state: PSRLState, index: Float[Array, "n actions"], obs: Int[Array, "*b"]
    ) -> Float[Array, "*b actions"]:
        """Look up the solved table."""
        return index[obs]

    def observe(self, state: PSRLState, transitions: Transition, mask: Mask) -> PSRLState:
        """Count the transitions."""
        return PSRLState(state.model.add(transitions, mask), state.horizon)

    def learn(self, state: PSRLState, batch: Batch, key: PRNG) -> tuple[PSRLState, Update]:
        """Change nothing: the posterior is exact."""
        return state, Update()

    def _transitions(self, model: EmpiricalMDP, key: PRNG) -> Float[Array, "n actions slots"]:
        """Draw the probability of every successor from its Dirichlet."""
        elsewhere = self.alpha + model.visits - jnp.sum(model.count, axis=-1)
        # Outcomes along the first axis: loops over short rows are slow on a CPU.
        count = jnp.moveaxis(model.count, -1, 0).reshape(self.successors, -1)
        concentration = jnp.concatenate([count, elsewhere.reshape(1, -1)])
        gamma = log_gamma(key, jnp.maximum(concentration, 1e-6))
        gamma = jnp.where(concentration > 0, gamma, -jnp.inf)
        drawn = jax.nn.softmax(gamma, axis=0)[:-1]
        return jnp.moveaxis(drawn.reshape(-1, *elsewhere.shape), 0, -1)

    def _mean(self, model: EmpiricalMDP) -> Float[Array, "n actions"]:
        return self._variance(model) * model.reward / self.beta

    def _variance(self, model: EmpiricalMDP) -> Float[Array, "n actions"]:
        return 1.0 / (1.0 / self.theta + model.visits / self.beta)

    def _solve(
        self,
        state: PSRLState,
        reward: Float[Array, "n actions"],
        probability: Float[Array, "n actions slots"],
    ) -> Float[Array, "n actions"]:
        def best(q):
            return jnp.max(q, axis=0)

        return state.model.solve(reward, probability, best, self.discount, state.horizon)
