"""Learning by steps: what one step of several environments does to an agent.

The compiled runner strings these functions and the environment's own together into one program;
the host runner calls them in turn with an environment that steps in Python.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.errors import SurveyorError
from surveyor.types import ERRORS, Batch, EnvSpec, Metrics, State, Transition


class Episodes(eqx.Module):
    """Episodes under way in each environment, and sums over those that ended since the last
    record."""

    returns: Float[Array, " envs"]
    lengths: Int[Array, " envs"]
    ended: Int[Array, ""]
    """All that have ended since the beginning."""
    count: Int[Array, ""]
    total_return: Float[Array, ""]
    total_length: Float[Array, ""]

    @classmethod
    def create(cls, envs: int) -> "Episodes":
        """None yet."""
        zero, none = jnp.zeros((), jnp.int32), jnp.zeros(())
        return cls(jnp.zeros(envs), jnp.zeros(envs, jnp.int32), zero, zero, none, none)

    def after(
        self,
        reward: Float[Array, " envs"],
        ended: Bool[Array, " envs"],
        stepped: Bool[Array, " envs"],
    ) -> "Episodes":
        """With one more step of each environment that has stepped."""
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
    """All that changes in the agent while it learns by steps."""

    agent: State
    index: PyTree
    """Of each environment, along the first axis."""
    episodes: Episodes
    step: Int[Array, ""]
    """Environment steps taken, by all environments together."""
    gradient_steps: Int[Array, ""]
    sums: Metrics
    """Of the metrics of every gradient step since the last record."""
    summed: Int[Array, ""]


class Rhythm(eqx.Module):
    """How acting and learning alternate: so many steps of all environments, so many updates."""

    acts: int
    updates: int
    envs: int

    @property
    def steps(self) -> int:
        """Environment steps in one round."""
        return self.acts * self.envs

    @classmethod
    def of(cls, agent: Agent) -> "Rhythm":
        """`gradient_steps` every `train_every` steps, in whole rounds of all environments."""
        every, envs = agent.train_every, agent.envs
        if agent.by_episodes:
            raise SurveyorError(
                f"{type(agent).__name__} learns by whole episodes, on the paper's problems only."
            )
        if agent.gradient_steps == 0:
            return cls(1, 0, envs)
        if every < 1:
            raise SurveyorError(
                "This environment is learnt by steps: set train_every to at least 1, "
                "or take a preset that does, such as SU.classic()."
            )
        if every % envs and envs % every:
            raise SurveyorError(
                f"train_every = {every} and envs = {envs} do not fit together: one must be a "
                "multiple of the other."
            )
        return cls(max(1, every // envs), agent.gradient_steps * max(1, envs // every), envs)


def start(agent: Agent, spec: EnvSpec, key: Key[Array, ""]) -> Learning:
    """Before the first step."""
    init_key, index_key = jax.random.split(key)
    state = agent.init(spec, init_key)
    indices = jax.vmap(partial(agent.sample, state))(jax.random.split(index_key, agent.envs))
    metrics = jax.eval_shape(agent.learn, state, _blank(agent, spec), key)[1]
    sums = {name: jnp.zeros(()) for name in metrics if name != ERRORS}
    zero = jnp.zeros((), jnp.int32)
    return Learning(state, indices, Episodes.create(agent.envs), zero, zero, sums, zero)


def act(
    agent: Agent,
    learning: Learning,
    spec: EnvSpec,
    obs: Shaped[Array, "envs ..."],
    key: Key[Array, ""],
) -> Int[Array, " envs"]:
    """One action for each environment: greedy on its index, or random before learning begins."""
    u = jax.random.uniform(key, (agent.envs, spec.num_actions))
    chosen = jax.vmap(partial(agent.act, learning.agent))(learning.index, obs, u)
    return jnp.where(learning.step < agent.warmup, jnp.argmax(u, axis=1), chosen)


def observe(
    agent: Agent,
    learning: Learning,
    transitions: Transition,
    score: Float[Array, " envs"],
    ended: Bool[Array, " envs"],
    key: Key[Array, ""],
    stepped: Bool[Array, " envs"] | None = None,
) -> Learning:
    """Take in one step of every environment; where an episode ended, draw a new index.

    The score is the reward as the environment gave it, which learning may see clipped. Nothing
    counts where an environment has not `stepped` but only begun an episode.
    """
    stepped = jnp.ones(agent.envs, bool) if stepped is None else stepped
    state = agent.observe(learning.agent, transitions, stepped)
    ended = ended & stepped
    episodes = learning.episodes.after(score, ended, stepped)
    redraw = ended
    if agent.redraw_every:
        redraw = redraw | (episodes.lengths % agent.redraw_every == 0)

    def draw():
        new = jax.vmap(partial(agent.sample, state))(jax.random.split(key, agent.envs))
        return jax.tree.map(partial(_choose, redraw), new, learning.index)

    index = jax.lax.cond(jnp.any(redraw), draw, lambda: learning.index)
    return eqx.tree_at(
        lambda learning: (learning.agent, learning.index, learning.episodes, learning.step),
        learning,
        (state, index, episodes, learning.step + agent.envs),
    )


def update(
    agent: Agent, learning: Learning, batch: Batch, key: Key[Array, ""]
) -> tuple[Learning, Float[Array, " b"] | None]:
    """One gradient step; returns the errors too if the batch is weighted."""
    state, metrics = agent.learn(learning.agent, batch, quick(key))
    errors = metrics.pop(ERRORS, None)
    sums = jax.tree.map(jnp.add, learning.sums, metrics)
    learning = eqx.tree_at(
        lambda learning: (
            learning.agent,
            learning.gradient_steps,
            learning.sums,
            learning.summed,
        ),
        learning,
        (state, learning.gradient_steps + 1, sums, learning.summed + 1),
    )
    return learning, errors


def quick(key: Key[Array, ""]) -> Key[Array, ""]:
    """A key to many random numbers in one operation: on a CPU the usual ones take a loop of small
    operations, which is 5% of a gradient step on MinAtar."""
    data = jax.random.key_data(key)
    return jax.random.wrap_key_data(jnp.concatenate([data, data]), impl="rbg")


def report(
    agent: Agent, learning: Learning, obs: Shaped[Array, "n ..."]
) -> tuple[Learning, Metrics]:
    """What to log, and the sums begun again."""
    episodes, zero = learning.episodes, jnp.zeros((), jnp.int32)
    metrics = {
        "return": episodes.total_return / episodes.count,  # NaN where none has ended
        "length": episodes.total_length / episodes.count,
        **{name: total / learning.summed for name, total in learning.sums.items()},
        **agent.diagnose(learning.agent, obs),
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


def _choose(where: Bool[Array, " n"], new: Array, old: Array) -> Array:
    return jnp.where(where.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _blank(agent: Agent, spec: EnvSpec) -> Batch:
    """A batch of the right shapes."""
    n = agent.batch_size
    obs = jnp.zeros((n, *spec.shape), spec.dtype)
    integers, reals = jnp.zeros(n, jnp.int32), jnp.zeros(n)
    return Batch(obs, integers, reals, obs, jnp.zeros(n, bool), integers, reals)
