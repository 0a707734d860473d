"""Learning by steps: acting, observing and updating for several environments side by side.

The compiled runner composes these functions with the environment's own into one program; the host
runner calls them in turn around an environment that steps in Python.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.errors import SurveyorError
from surveyor.replay import registry
from surveyor.replay.steps import StepReplay
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Metrics, Schedule, Transition


class Episodes(eqx.Module):
    """Episodes under way in each environment, and sums over those ended since the last record."""

    returns: Float[Array, " envs"]
    lengths: Int[Array, " envs"]
    ended: Int[Array, ""]
    """Number of all that have ended so far."""
    count: Int[Array, ""]
    total_return: Float[Array, ""]
    total_length: Float[Array, ""]

    @classmethod
    def create(cls, envs: int) -> "Episodes":
        """Return counts before the first step."""
        zero, none = jnp.zeros((), jnp.int32), jnp.zeros(())
        return cls(jnp.zeros(envs), jnp.zeros(envs, jnp.int32), zero, zero, none, none)

    def after(
        self,
        reward: Float[Array, " envs"],
        ended: Bool[Array, " envs"],
        stepped: Bool[Array, " envs"],
    ) -> "Episodes":
        """Return the counts after one more step of each environment that has stepped."""
        returns = self.returns + jnp.where(stepped, reward, 0.0)
        lengths = self.lengths + stepped
        now = jnp.sum(ended)
        return Episodes(
            jnp.where(ended, 0.0, returns),
            jnp.where(ended, 0, lengths),
            self.ended + now,
            self.count + now,
            self.total_return + jnp.sum(jnp.where(ended, returns, 0.0)),
            self.total_length + jnp.sum(jnp.where(ended, lengths, 0)),
        )


class Learning(eqx.Module):
    """Everything that changes in the agent while it learns by steps."""

    agent_state: PyTree
    index: PyTree
    """Index of each environment, along the first axis."""
    episodes: Episodes
    step: Int[Array, ""]
    """Environment steps taken, by all environments together."""
    gradient_steps: Int[Array, ""]
    sums: Metrics
    """Sums of the metrics of all gradient steps since the last record."""
    summed: Int[Array, ""]


class Round(NamedTuple):
    """One alternation of acting and learning."""

    acts: int
    """Steps of every environment."""
    updates: int
    """Gradient steps after them."""
    envs: int

    @property
    def steps(self) -> int:
        """Environment steps in one round."""
        return self.acts * self.envs

    @classmethod
    def of(cls, agent: Agent) -> "Round":
        """Return `updates` every `every` steps, in whole steps of all environments.

        Raise `SurveyorError` if the agent does not learn by steps.
        """
        schedule = agent.schedule
        every, envs = schedule.every, schedule.envs
        if agent.by_episodes:
            raise SurveyorError(
                f"{type(agent).__name__} learns by whole episodes, on the paper's problems only."
            )
        if schedule.updates == 0:
            return cls(1, 0, envs)
        if every < 1:
            raise SurveyorError(
                "This environment is learnt by steps: set train_every to at least 1, "
                'or take a preset that does, such as SUPlus.preset("classic").'
            )
        if every % envs and envs % every:
            raise SurveyorError(
                f"train_every = {every} and envs = {envs} do not fit together: one must be a "
                "multiple of the other."
            )
        return cls(max(1, every // envs), schedule.updates * max(1, envs // every), envs)


def start(agent: Agent, spec: EnvSpec, key: PRNG) -> Learning:
    """Return the state of learning before the first step."""
    init_key, index_key = jax.random.split(key)
    envs, state = agent.schedule.envs, agent.init(spec, init_key)
    indices = jax.vmap(partial(agent.sample, state))(jax.random.split(index_key, envs))
    metrics = jax.eval_shape(agent.learn, state, _blank(agent.schedule, spec), key)[1].metrics
    sums = {name: jnp.zeros(()) for name in metrics}
    zero = jnp.zeros((), jnp.int32)
    return Learning(state, indices, Episodes.create(envs), zero, zero, sums, zero)


def empty_replay(agent: Agent, spec: EnvSpec, *, host: bool = False, size: int = -1) -> StepReplay:
    """Return the replay that an agent's schedule asks for, or one of another size."""
    schedule = agent.schedule
    strategy = registry.fitting(schedule.replay, "steps")
    capacity = schedule.capacity if size < 0 else size
    returns = {"n_step": schedule.n_step, "discount": schedule.discount}
    return StepReplay.create(spec, capacity, schedule.envs, strategy, host=host, **returns)


def act(
    agent: Agent,
    learning: Learning,
    spec: EnvSpec,
    obs: Shaped[Array, "envs ..."],
    key: PRNG,
) -> Int[Array, " envs"]:
    """Return one action for each environment: greedy on its index, or random in the warm-up."""
    schedule = agent.schedule
    u = jax.random.uniform(key, (schedule.envs, spec.num_actions))
    chosen = jax.vmap(partial(agent.act, learning.agent_state))(learning.index, obs, u)
    return jnp.where(learning.step < schedule.warmup, jnp.argmax(u, axis=1), chosen)


def observe(
    agent: Agent,
    learning: Learning,
    transitions: Transition,
    score: Float[Array, " envs"],
    ended: Bool[Array, " envs"],
    key: PRNG,
    stepped: Bool[Array, " envs"] | None = None,
) -> Learning:
    """Observe one step of every environment; where an episode ended, draw a new index.

    **Arguments:**

    - `agent`, `learning`: the agent, and its state of learning.
    - `transitions`: the step, with rewards that may be clipped for learning.
    - `score`: rewards as the environment gave them.
    - `ended`: where an episode ended.
    - `key`: the randomness of new indices.
    - `stepped`: False where an environment only began an episode; everywhere True if None.
    """
    schedule = agent.schedule
    stepped = jnp.ones(schedule.envs, bool) if stepped is None else stepped
    state = agent.observe(learning.agent_state, transitions, stepped)
    ended = ended & stepped
    episodes = learning.episodes.after(score, ended, stepped)
    redraw = ended
    if schedule.redraw_every:
        redraw = redraw | (episodes.lengths % schedule.redraw_every == 0)

    def draw():
        new = jax.vmap(partial(agent.sample, state))(jax.random.split(key, schedule.envs))
        return jax.tree.map(partial(_choose, redraw), new, learning.index)

    index = jax.lax.cond(jnp.any(redraw), draw, lambda: learning.index)
    return eqx.tree_at(
        lambda learning: (learning.agent_state, learning.index, learning.episodes, learning.step),
        learning,
        (state, index, episodes, learning.step + schedule.envs),
    )


def update(
    agent: Agent, learning: Learning, batch: Batch, key: PRNG
) -> tuple[Learning, Float[Array, " b"] | None]:
    """Take one gradient step; return the error of each example too."""
    state, done = agent.learn(learning.agent_state, batch, fast_key(key))
    sums = jax.tree.map(jnp.add, learning.sums, done.metrics)
    learning = eqx.tree_at(
        lambda learning: (
            learning.agent_state,
            learning.gradient_steps,
            learning.sums,
            learning.summed,
        ),
        learning,
        (state, learning.gradient_steps + 1, sums, learning.summed + 1),
    )
    return learning, done.errors


def fast_key(key: PRNG) -> PRNG:
    """Return a key that draws many random numbers in one operation.

    The usual keys take a loop of small operations on a CPU, 5% of a gradient step on MinAtar.
    """
    data = jax.random.key_data(key)
    return jax.random.wrap_key_data(jnp.concatenate([data, data]), impl="rbg")


def report(
    agent: Agent, learning: Learning, obs: Shaped[Array, "n ..."]
) -> tuple[Learning, Metrics]:
    """Return the metrics to log, and the state of learning with its sums reset."""
    episodes, zero = learning.episodes, jnp.zeros((), jnp.int32)
    metrics = {
        "return": episodes.total_return / episodes.count,  # NaN where none has ended
        "length": episodes.total_length / episodes.count,
        **{name: total / learning.summed for name, total in learning.sums.items()},
        **agent.diagnose(learning.agent_state, obs),
    }
    again = eqx.tree_at(
        lambda e: (e.count, e.total_return, e.total_length),
        episodes,
        (zero, jnp.zeros(()), jnp.zeros(())),
    )
    sums = jax.tree.map(jnp.zeros_like, learning.sums)
    learning = eqx.tree_at(
        lambda learning: (learning.episodes, learning.sums, learning.summed),
        learning,
        (again, sums, zero),
    )
    return learning, metrics


def _choose(where: Mask, new: Array, old: Array) -> Array:
    return jnp.where(where.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _blank(schedule: Schedule, spec: EnvSpec) -> Batch:
    """Return a batch of the right shapes."""
    n = schedule.batch_size
    obs = jnp.zeros((n, *spec.shape), spec.dtype)
    integers, reals = jnp.zeros(n, jnp.int32), jnp.zeros(n)
    return Batch(obs, integers, reals, obs, jnp.zeros(n, bool), integers, reals)
