"""The interface of every agent: five verbs, and an index that names one sample of its belief."""

import abc
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.agents import entry_of, options
from surveyor.inference.policies import Legal, allowed
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Obs, QPosterior, Schedule, Transition, Update

Q = Float[Array, "*batch actions"]
Ties = Float[Array, " actions"]
Action = Int[Array, ""]
State = TypeVar("State")
Index = TypeVar("Index")
Kind = TypeVar("Kind", bound="Agent")


class Agent(eqx.Module, Generic[State, Index]):
    """Hyperparameters and pure functions; everything that changes is in the state.

    An agent holds a distribution over Q functions and acts greedily on one sample of it for a
    whole episode. The *index* names that sample. What its methods take:

    - `spec`: the spaces of the environment.
    - `state`: everything that the agent has learnt, from `init`, `observe` or `learn`.
    - `index`: a sample of the belief, from `sample` or `greedy`.
    - `obs`: one observation, or many along the first axes.
    - `transitions`, `mask`: new steps of experience, and True for those that count.
    - `batch`: transitions from the replay.
    - `key`: the source of randomness.
    """

    by_episodes: ClassVar[bool] = False
    """True if it can only learn after whole episodes, in numbered states."""

    closed_form: ClassVar[bool] = False
    """True if `q_posterior` is exact and takes no longer than Q itself."""

    random_q: ClassVar[bool] = False
    """True if `q` itself draws random numbers."""

    one_start: ClassVar[bool] = True
    """True if `init` is compiled as a whole. False keeps the numbers of an `init` that computes
    with what it draws: compiled, these are rounded otherwise."""

    def __check_init__(self):
        options.require_valid(self)

    @classmethod
    def preset(cls: type[Kind], problem: str, name: str | None = None) -> Kind:
        """Return the agent with the hyperparameters for a kind of problem.

        **Arguments:**

        - `problem`: tree, chain, minatar, atari, grid, classic (vectors) or numbered (states).
        - `name`: one of the agent's presets, such as `"text"` of SU; its default one if None.
        """
        return cls(**entry_of(cls).values(problem, name))

    @property
    def schedule(self) -> Schedule:
        """When the agent acts, learns and draws batches; by default it never learns."""
        return Schedule()

    @abc.abstractmethod
    def init(self, spec: EnvSpec, key: PRNG) -> State:
        """Return the state before anything has been observed."""

    @abc.abstractmethod
    def sample(self, state: State, key: PRNG) -> Index:
        """Draw an index, to be followed for one episode."""

    @abc.abstractmethod
    def greedy(self, state: State) -> Index:
        """Return the index of the agent's best guess, which evaluations act on."""

    @abc.abstractmethod
    def q(self, state: State, index: Index, obs: Obs) -> Q:
        """Return the Q values of an index."""

    @abc.abstractmethod
    def observe(self, state: State, transitions: Transition, mask: Mask) -> State:
        """Update what has a closed form (a posterior, counts) with the transitions in `mask`."""

    @abc.abstractmethod
    def learn(self, state: State, batch: Batch, key: PRNG) -> tuple[State, Update]:
        """Take one gradient step on a batch from the replay."""

    def act(self, state: State, index: Index, obs: Obs, u: Ties, legal: Legal = None) -> Action:
        """Return the greedy action of an index in one state; uniform numbers `u` break ties.

        `legal` is True for each action that is allowed; it is given where the environment has such
        a mask.
        """
        return argmax(allowed(self.q(state, index, obs), legal), u)

    def q_posterior(self, state: State, obs: Obs, key: PRNG | None = None) -> QPosterior:
        """Return mean and joint covariance of Q over these observations and all actions.

        Estimated from 1000 samples unless an agent has a closed form.
        """
        key = jax.random.key(0) if key is None else key
        indices, count = self.sample_many(state, key, 1000)
        samples = jax.vmap(lambda index: self.q(state, index, obs), axis_size=count)(indices)
        covariance = jnp.cov(samples.reshape(count, -1), rowvar=False, bias=True)
        return QPosterior(jnp.mean(samples, axis=0), jnp.atleast_2d(covariance))

    def sample_many(self, state: State, key: PRNG, count: int) -> tuple[Any, int]:
        """Return up to `count` indices stacked on axis 0, and their number."""
        return jax.lax.map(partial(self.sample, state), jax.random.split(key, count)), count

    def diagnose(self, state: State, obs: Obs) -> dict[str, Float[Array, ""]]:
        """Return metrics of the state to log, given some observations from the replay."""
        return {"q_mean": jnp.mean(jnp.max(self.q(state, self.greedy(state), obs), axis=-1))}


def argmax(q: Float[Array, " actions"], u: Ties) -> Action:
    """Return the best action; among equals the one with the largest u, so that ties are fair."""
    return jnp.argmax(jnp.where(q == jnp.max(q), u, -1.0))
