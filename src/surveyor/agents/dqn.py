"""DQN with ε-greedy exploration (Mnih et al. 2015), double if asked (van Hasselt 2010)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents.base import Action, Q, Ties
from surveyor.agents.learner import QLearner
from surveyor.agents.options import Probability, Size
from surveyor.inference.policies import Legal, allowed
from surveyor.models.losses import per_head, td_target
from surveyor.models.q import QModel
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Obs, Transition, Update


class DQNState(eqx.Module):
    """Everything that DQN changes."""

    network: QModel
    steps: Int[Array, ""]
    """Environment steps so far, which decide ε."""


class DQN(QLearner[DQNState, Float[Array, ""]]):
    """One Q network, and a random action with probability ε: exploration without a belief.

    The index is a factor on ε: 1 in training, 0 for greedy. ε falls linearly from `epsilon_start`
    to `epsilon_end` over the first `epsilon_steps` environment steps.
    """

    epsilon_start: Probability = 1.0
    """ε at the beginning."""
    epsilon_end: Probability = 0.05
    """ε in the end."""
    epsilon_steps: Size = 10_000
    """Environment steps over which ε falls from one to the other."""
    double: bool = False
    """True if one network chooses the next action and another values it, so that no error is chosen
    because it is large: the network and its target network; on tables two networks, of which each
    gradient step trains one at random."""

    def init(self, spec: EnvSpec, key: PRNG) -> DQNState:
        """Return an untrained network; on tables two for double DQN."""
        heads = 2 if self.double and self.tables(spec) else 1
        return DQNState(self.q_model(spec, key, heads), jnp.zeros((), jnp.int32))

    def sample(self, state: DQNState, key: PRNG) -> Float[Array, ""]:
        """Return 1: explore with the current ε."""
        return jnp.ones(())

    def greedy(self, state: DQNState) -> Float[Array, ""]:
        """Return 0: do not explore."""
        return jnp.zeros(())

    def epsilon(self, state: DQNState) -> Float[Array, ""]:
        """Return the current ε."""
        passed = jnp.minimum(state.steps / self.epsilon_steps, 1.0)
        return self.epsilon_start + passed * (self.epsilon_end - self.epsilon_start)

    def q(self, state: DQNState, index: Float[Array, ""], obs: Obs) -> Q:
        """Return Q̂(s, ·), whatever ε is."""
        return jnp.mean(state.network.q(obs), axis=-2)

    def act(
        self,
        state: DQNState,
        index: Float[Array, ""],
        obs: Obs,
        u: Ties,
        legal: Legal = None,
    ) -> Action:
        """Return the greedy action, or any action with probability ε.

        The largest of the A uniform numbers says which action it would be, and its A-th power,
        which is uniform and independent of that, whether.
        """
        drawn = u if legal is None else jnp.where(legal, u, 0.0)
        choices = u.size if legal is None else jnp.sum(legal)
        random = jnp.max(drawn) ** choices < index * self.epsilon(state)
        return jnp.where(random, jnp.argmax(drawn), super().act(state, index, obs, u, legal))

    def observe(self, state: DQNState, transitions: Transition, mask: Mask) -> DQNState:
        """Count the steps."""
        return DQNState(state.network, state.steps + jnp.sum(mask))

    def learn(self, state: DQNState, batch: Batch, key: PRNG) -> tuple[DQNState, Update]:
        network = state.network
        trained = jax.random.randint(key, (1,), 0, network.heads)
        valued = network.target_q(batch.next_obs)
        choosing = network.q(batch.next_obs) if self.double else valued
        choosing = allowed(choosing[:, trained], per_head(batch))
        chosen = jnp.argmax(choosing, axis=-1, keepdims=True)
        valued = valued[:, (trained + 1) % network.heads]
        value = jnp.take_along_axis(valued, chosen, axis=-1)[..., 0]
        targets = td_target(batch, self.discount, value)
        learnt, update = network.fit(batch, targets, self.loss, trained)
        return DQNState(learnt, state.steps), update
