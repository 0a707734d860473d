"""Learning by steps: acting, observing and updating for several environments side by side.

The compiled runner composes these functions with the environment's own into one program; the host
runner calls them in turn around an environment that steps in Python.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.errors import SurveyorError
from surveyor.inference.policies import Legal, allowed
from surveyor.types import PRNG, Batch, EnvSpec, Metrics, Transition

Flags = Bool[Array, " envs"]


class Episodes(eqx.Module):
    """Episodes under way in each environment, and sums over those ended since the last record."""

    returns: Float[Array, " envs"]
    lengths: Int[Array, " envs"]
    ended: Int[Array, ""]
    """Number of all that have ended so far."""
    count: Int[Array, ""]
    total_return: Float[Array, ""]
    total_length: Float[Array, ""]

    def after(self, reward: Float[Array, " envs"], ended: Flags, stepped: Flags) -> "Episodes":
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
            kind = type(agent).__name__
            raise SurveyorError(f"{kind} learns by whole episodes, on the paper's problems only.")
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
    n = agent.schedule.batch_size
    seen, integers, reals = jnp.zeros((n, *spec.shape), spec.dtype), jnp.zeros(n, int), jnp.zeros(n)
    legal = jnp.ones((n, spec.num_actions), bool) if spec.masked else None
    ends = (jnp.zeros(n, bool), integers, reals)
    batch = Batch(seen, integers, reals, seen, *ends, next_legal=legal)
    metrics = jax.eval_shape(agent.learn, state, batch, key)[1].metrics
    sums = {name: jnp.zeros(()) for name in metrics}
    none, zero = jnp.zeros((), jnp.int32), jnp.zeros(())
    episodes = Episodes(jnp.zeros(envs), jnp.zeros(envs, jnp.int32), none, none, zero, zero)
    return Learning(state, indices, episodes, none, none, sums, none)


def act(
    agent: Agent,
    learning: Learning,
    spec: EnvSpec,
    obs: Shaped[Array, "envs ..."],
    key: PRNG,
    legal: Legal = None,
) -> Int[Array, " envs"]:
    """Return one action for each environment: greedy on its index, or random in the warm-up.

    `legal` are the actions that each allows, where there is such a mask.
    """
    schedule = agent.schedule
    u = jax.random.uniform(key, (schedule.envs, spec.num_actions))
    seen = (obs, u) if legal is None else (obs, u, legal)
    chosen = jax.vmap(partial(agent.act, learning.agent_state))(learning.index, *seen)
    random = jnp.argmax(allowed(u, legal), axis=1)
    return jnp.where(learning.step < schedule.warmup, random, chosen)


def redrawn(where: Flags, new: PyTree, old: PyTree) -> PyTree:
    """Return the indices of all environments: new ones in some, the old ones elsewhere."""

    def choose(new, old):
        return jnp.where(where.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)


def observe(
    agent: Agent,
    learning: Learning,
    transitions: Transition,
    score: Float[Array, " envs"],
    ended: Flags,
    key: PRNG,
    stepped: Flags,
) -> Learning:
    """Observe one step of every environment; where an episode ended, draw a new index.

    Rewards in `transitions` may be clipped for learning; `score` has them as the environment gave
    them. `stepped` is False where an environment only began an episode.
    """
    schedule = agent.schedule
    state = agent.observe(learning.agent_state, transitions, stepped)
    ended = ended & stepped
    episodes = learning.episodes.after(score, ended, stepped)
    redraw = ended
    if schedule.redraw_every:
        redraw = redraw | (episodes.lengths % schedule.redraw_every == 0)

    def draw():
        new = jax.vmap(partial(agent.sample, state))(jax.random.split(key, schedule.envs))
        return redrawn(redraw, new, learning.index)

    index = jax.lax.cond(jnp.any(redraw), draw, lambda: learning.index)
    step = learning.step + schedule.envs
    return replace(learning, agent_state=state, index=index, episodes=episodes, step=step)


def update(
    agent: Agent, learning: Learning, batch: Batch, key: PRNG
) -> tuple[Learning, Float[Array, " b"] | None]:
    """Take one gradient step; return the error of each example too."""
    # A key that draws many numbers in one operation: the usual ones take a loop of small operations
    # on a CPU, 5% of a gradient step on MinAtar.
    data = jax.random.key_data(key)
    fast_key = jax.random.wrap_key_data(jnp.concatenate([data, data]), impl="rbg")
    state, done = agent.learn(learning.agent_state, batch, fast_key)
    sums = jax.tree.map(jnp.add, learning.sums, done.metrics)
    taken, summed = learning.gradient_steps + 1, learning.summed + 1
    changes = {"agent_state": state, "gradient_steps": taken, "sums": sums, "summed": summed}
    return replace(learning, **changes), done.errors


def report(
    agent: Agent, learning: Learning, obs: Shaped[Array, "n ..."]
) -> tuple[Learning, Metrics]:
    """Return the metrics to log, and the state of learning with its sums reset."""
    episodes, none, zero = learning.episodes, jnp.zeros((), jnp.int32), jnp.zeros(())
    metrics = {
        "return": episodes.total_return / episodes.count,  # NaN where none has ended
        "length": episodes.total_length / episodes.count,
        **{name: total / learning.summed for name, total in learning.sums.items()},
        **agent.diagnose(learning.agent_state, obs),
    }
    again = replace(episodes, count=none, total_return=zero, total_length=zero)
    sums = jax.tree.map(jnp.zeros_like, learning.sums)
    return replace(learning, episodes=again, sums=sums, summed=none), metrics
