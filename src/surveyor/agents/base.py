"""What every agent is: five verbs, and an index that names one sample of its belief."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from surveyor.agents import check
from surveyor.types import Batch, EnvSpec, Metrics, QPosterior, State, Transition


class Agent(eqx.Module):
    """Hyperparameters and pure functions; all that changes is in the state they pass around.

    An agent holds a distribution over Q functions and acts greedily on one sample of it for a
    whole episode. The *index* names that sample.
    """

    by_episodes: ClassVar[bool] = False
    """Whether it can only learn by whole episodes in numbered states."""

    closed_form: ClassVar[bool] = False
    """Whether `q_posterior` is exact and takes no longer than Q itself."""

    discount: float = 1.0
    """γ."""
    batch_size: int = 1
    """Transitions in a gradient step."""
    recent: int = 0
    """How many of a batch come from the newest episode."""
    best: int = 0
    """How many of a batch come from the best episode so far."""
    replay_capacity: int = 1
    """Transitions remembered, for gradient steps."""
    gradient_steps: int = 0
    """Gradient steps after every episode, or after every `train_every` steps; 0 where all is in
    closed form."""
    train_every: int = 0
    """Environment steps between learning and learning; 0, on the paper's problems: an episode."""
    warmup: int = 0
    """Environment steps of random actions before the first gradient step."""
    envs: int = 1
    """Environments that are played side by side, each with an index of its own."""
    redraw_every: int = 0
    """Steps after which an index is drawn anew within an episode; 0 for never."""
    n_step: int = 1
    """Steps over which rewards, and for SU features, are summed up before the target looks to the
    network."""
    priority: float = 0.0
    """Exponent α of prioritised replay (Schaul et al. 2016); 0 draws uniformly."""

    def __check_init__(self):
        check.choices(self)
        check.at_least(self, 1, "batch_size", "replay_capacity", "envs", "n_step")
        check.at_least(self, 0, "gradient_steps", "recent", "best")
        check.at_least(self, 0, "train_every", "warmup", "redraw_every", "priority")
        check.that(
            self.recent + self.best <= self.batch_size,
            f"recent and best together must be at most batch_size = {self.batch_size}, "
            f"not {self.recent + self.best}.",
        )

    @abc.abstractmethod
    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> State:
        """The state before anything has been seen."""

    @abc.abstractmethod
    def sample(self, state: State, key: Key[Array, ""]) -> PyTree:
        """Draw an index, to be followed for one episode."""

    @abc.abstractmethod
    def greedy(self, state: State) -> PyTree:
        """The index of the agent's best guess, which tests act on."""

    @abc.abstractmethod
    def q(
        self, state: State, index: PyTree, obs: Shaped[Array, "..."]
    ) -> Float[Array, "*batch actions"]:
        """The Q values that this index stands for."""

    @abc.abstractmethod
    def observe(self, state: State, transitions: Transition, mask: Bool[Array, " n"]) -> State:
        """Take in new transitions in closed form (a posterior, counts); only where `mask`."""

    @abc.abstractmethod
    def learn(self, state: State, batch: Batch, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """One gradient step on a batch from the replay."""

    def act(
        self, state: State, index: PyTree, obs: Shaped[Array, "..."], u: Float[Array, " actions"]
    ) -> Int[Array, ""]:
        """The action in one state, given uniform random numbers: greedy on the index."""
        return argmax(self.q(state, index, obs), u)

    def q_posterior(
        self, state: State, obs: Shaped[Array, "..."], key: Key[Array, ""] | None = None
    ) -> QPosterior:
        """Mean and joint covariance of Q over these observations and all actions.

        Estimated from 1000 samples, for an agent that has nothing exact to say.
        """
        key = jax.random.key(0) if key is None else key
        indices, count = self.several(state, key, 1000)
        samples = jax.vmap(lambda index: self.q(state, index, obs), axis_size=count)(indices)
        flat = samples.reshape(count, -1)
        covariance = jnp.cov(flat, rowvar=False, bias=True)
        return QPosterior(jnp.mean(samples, axis=0), jnp.atleast_2d(covariance))

    def several(self, state: State, key: Key[Array, ""], count: int) -> tuple[PyTree, int]:
        """So many indices along the first axis, or fewer if those are all that there are; and how
        many."""
        draw = lambda key: self.sample(state, key)  # noqa: E731
        return jax.lax.map(draw, jax.random.split(key, count)), count

    def diagnose(self, state: State, obs: Shaped[Array, "..."]) -> Metrics:
        """What to log of the state now and then, given some observations from the replay."""
        return {"q_mean": jnp.mean(jnp.max(self.q(state, self.greedy(state), obs), axis=-1))}


def argmax(q: Float[Array, " actions"], u: Float[Array, " actions"]) -> Int[Array, ""]:
    """The best action; among equals the one with the largest u, so each with the same chance."""
    return jnp.argmax(jnp.where(q == jnp.max(q), u, -1.0))
