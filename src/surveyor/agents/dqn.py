"""DQN with ε-greedy exploration (Mnih et al. 2015), double if asked (van Hasselt 2010)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from surveyor.agents import check
from surveyor.agents.learner import ATARI, CLASSIC, MINATAR
from surveyor.agents.qlearner import QLearner
from surveyor.models.losses import td_target
from surveyor.models.qnetwork import DeepQ, TabularQ
from surveyor.types import EnvSpec


class DQNState(eqx.Module):
    """What DQN has learnt so far."""

    network: TabularQ | DeepQ
    steps: Int[Array, ""]
    """Environment steps seen, which decide ε."""


class DQN(QLearner):
    """One Q network, and a random action with probability ε: exploration without a belief.

    The index is 1, or 0 for greedy: a factor on ε, which falls in a straight line from
    `epsilon_start` to `epsilon_end` over the first `epsilon_steps` environment steps.
    """

    epsilon_start: float = 1.0
    """ε at the beginning."""
    epsilon_end: float = 0.05
    """ε in the end."""
    epsilon_steps: int = 10_000
    """Environment steps over which ε falls from one to the other."""
    double: bool = False
    """One network chooses the next action and another says what that is worth, so that no error is
    chosen because it is large: the network that learns and its target network; on tables two, of
    which each gradient step trains one at random."""

    def __check_init__(self):
        check.at_least(self, 1, "epsilon_steps")
        for name in ("epsilon_start", "epsilon_end"):
            value = getattr(self, name)
            check.that(0 <= value <= 1, f"{name} must be from 0 to 1, not {value:g}.")

    @classmethod
    def minatar(cls) -> "DQN":
        """For MinAtar: double, ε as in Young and Tian (2019)."""
        return cls(**MINATAR, double=True, epsilon_end=0.1, epsilon_steps=100_000)

    @classmethod
    def atari(cls) -> "DQN":
        """For Atari: double, ε from 1 to 0.01 over a million steps (van Hasselt et al. 2016)."""
        return cls(**ATARI, double=True, epsilon_end=0.01, epsilon_steps=1_000_000)

    @classmethod
    def classic(cls) -> "DQN":
        """For small problems with vectors as observations: ours."""
        return cls(**CLASSIC, double=True, epsilon_end=0.05, epsilon_steps=10_000)

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> DQNState:
        heads = 2 if self.double and spec.tabular else 1
        return DQNState(self._q_network(spec, key, heads), jnp.zeros((), jnp.int32))

    def sample(self, state: DQNState, key: Key[Array, ""]) -> Float[Array, ""]:
        """With ε as it stands."""
        return jnp.ones(())

    def greedy(self, state: DQNState) -> Float[Array, ""]:
        """Without it."""
        return jnp.zeros(())

    def epsilon(self, state: DQNState) -> Float[Array, ""]:
        """ε, as it stands."""
        passed = jnp.minimum(state.steps / self.epsilon_steps, 1.0)
        return self.epsilon_start + passed * (self.epsilon_end - self.epsilon_start)

    def q(self, state, index, obs):
        """Q̂(s, ·), whatever ε is."""
        return jnp.mean(state.network.q(obs), axis=-2)

    def act(self, state, index, obs, u):
        """Greedy, or with probability ε any action.

        The largest of the uniform numbers says which action it would be, and its A-th power,
        which is uniform and independent of that, whether.
        """
        random = jnp.max(u) ** u.size < index * self.epsilon(state)
        return jnp.where(random, jnp.argmax(u), super().act(state, index, obs, u))

    def observe(self, state, transitions, mask):
        """Count the steps."""
        return DQNState(state.network, state.steps + jnp.sum(mask))

    def learn(self, state, batch, key):
        """One step of Q learning."""
        network = state.network
        trained = jax.random.randint(key, (1,), 0, network.heads)
        valued = network.next_q(batch.next_obs)
        choosing = network.q(batch.next_obs) if self.double else valued
        chosen = jnp.argmax(choosing[:, trained], axis=-1, keepdims=True)
        valued = valued[:, (trained + 1) % network.heads]
        value = jnp.take_along_axis(valued, chosen, axis=-1)[..., 0]
        targets = td_target(batch, self.discount, value)
        learnt, metrics = network.learn(batch, targets, self.loss, trained)
        return DQNState(learnt, state.steps), metrics
