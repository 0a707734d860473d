"""Belief snapshots: what an agent believes about states or observations, as arrays."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.envs.base import Environment, Params
from surveyor.inference.policies import greedy_policy
from surveyor.replay.steps import StepReplay
from surveyor.training import episodes
from surveyor.types import PRNG, HostArrays, Obs

SIDE = 160
"""Largest number of rows and columns of states in a picture."""
SAMPLES = 64
"""Posterior samples, for probabilities and where a belief has no closed form."""
PATH_SAMPLES = 512
"""Posterior samples of Q along the optimal path, where a sample costs next to nothing."""
PATHS = 8
"""Sampled policies whose episodes are kept."""
OBSERVATIONS = 6
"""Observations whose Q values are followed where states are not numbers."""
Indices = tuple[PyTree, int]
"""Indices stacked on axis 0, and their number."""
States = Int[Array, " m"]


def strided(along_path: Any) -> Any:
    """Return every n-th of a sequence along the optimal path, no more than can be shown."""
    return along_path[:: -(-len(along_path) // SIDE)]


@eqx.filter_jit
def about(
    agent: Agent, agent_state: PyTree, obs: Shaped[HostArrays, "n ..."], key: PRNG
) -> dict[str, Array]:
    """Return mean and standard deviation of Q, and action probabilities, at observations."""
    obs = jnp.asarray(obs)
    indices = agent.sample_many(agent_state, key, SAMPLES)
    q = _sampled_q(agent, agent_state, indices, obs)
    mean, std = jnp.mean(q, axis=0), jnp.std(q, axis=0)
    if agent.closed_form:
        belief = agent.q_posterior(agent_state, obs)
        mean = belief.mean
        variance = jnp.diagonal(belief.covariance)
        std = jnp.sqrt(jnp.maximum(variance, 0.0)).reshape(std.shape)
    return {"mean": mean, "std": std, "probability": jnp.mean(greedy_policy(q), axis=0)}


def choose_observations(replay: StepReplay) -> np.ndarray | None:
    """Return a few different observations from the replay; None while there are too few."""
    if int(replay.count) < OBSERVATIONS:
        return None
    u = (np.arange(4 * OBSERVATIONS, dtype=np.float32) + 0.5) / (4 * OBSERVATIONS)
    obs = np.asarray(replay.observations(u))
    first = np.unique(obs.reshape(len(obs), -1), axis=0, return_index=True)[1]
    return obs[np.sort(first)[:: -(-len(first) // OBSERVATIONS)]]


@functools.lru_cache(maxsize=4)
def map_program(agent: Agent, env: Environment) -> Callable[..., dict[str, Array]] | None:
    """Return a program that snapshots every state of a map, for all seeds; None without a map."""
    layout = env.layout(SIDE)
    if layout is None:
        return None
    n, path = len(layout.states), jnp.asarray(layout.path)
    states = jnp.concatenate([jnp.asarray(layout.states), path])

    def program(agent_state: PyTree, visits: Int[Array, "states actions"], params: Params, key):
        sample_key, play_key, path_key = jax.random.split(key, 3)
        indices = agent.sample_many(agent_state, sample_key, SAMPLES)
        good = env.good(params, states)
        both = jnp.stack([good, 1 - good], axis=1)
        take = lambda x: jnp.take_along_axis(x, both, axis=1)  # noqa: E731
        mean, covariance, likely = _marginals(agent, agent_state, indices, states)
        mean = take(mean)
        variance = take(jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2), 0.0))
        along = _along(agent, agent_state, indices, path, path_key)
        shown = map(strided, (along.swapaxes(0, 1), path, good[n:]))
        paths, succeeded = _episodes(agent, env, params, agent_state, indices, play_key)
        agreed = greedy_policy(along)[:, jnp.arange(len(path)), good[n:]]
        # Proposition 1 is about a belief under which Q values are independent.
        alone = _exceeds(mean[n:, 0] - mean[n:, 1], jnp.sum(variance[n:], axis=1))
        return {
            "visits": take(visits[states])[:n],
            "mean": mean[:n],
            "std": jnp.sqrt(variance[:n]),
            "probability": take(likely)[:n, 0],
            "paths": paths,
            "succeeded": succeeded,
            "joint": jnp.mean(jnp.prod(agreed, axis=1)),
            "joint_samples": jnp.asarray(len(along)),
            "log10_factorised": jnp.sum(jnp.log10(jnp.maximum(alone, 1e-30))),
            "correlation": _correlation(agent, agent_state, *shown),
        }

    key = jax.random.key(0)
    loop = jax.eval_shape(lambda: episodes.start(agent, env, key))
    lowered = jax.jit(program).lower(loop.agent_state, loop.visits, env.default_params, key)
    # Compile fast, for a few calls only; at level 0 some of the normal draws inside Q are NaN.
    options: dict[str, str | bool] = {"xla_llvm_disable_expensive_passes": True}
    options["xla_backend_optimization_level"] = "1" if agent.random_q else "0"
    return lowered.compile(compiler_options=options)


def _along(
    agent: Agent, agent_state: PyTree, indices: Indices, path: States, key: PRNG
) -> Float[Array, "k m 2"]:
    """Return Q along the path under the indices, or under more samples where they are cheap."""
    if not agent.closed_form:
        return _sampled_q(agent, agent_state, indices, path)
    draw = jax.vmap(lambda key: agent.q(agent_state, agent.sample(agent_state, key), path))
    return draw(jax.random.split(key, PATH_SAMPLES))


def _marginals(
    agent: Agent, agent_state: PyTree, indices: Indices, states: Int[Array, " n"]
) -> tuple[Float[Array, "n 2"], Float[Array, "n 2 2"], Float[Array, "n 2"]]:
    """Return mean and covariance of Q and action probabilities, for each state by itself."""
    if agent.closed_form:
        each = jax.vmap(lambda one: agent.q_posterior(agent_state, one[None]))(states)
        mean, covariance = each.mean[:, 0], each.covariance
        spread = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
        first = _exceeds(mean[:, 0] - mean[:, 1], spread)
        return mean, covariance, jnp.stack([first, 1 - first], axis=1)
    q = _sampled_q(agent, agent_state, indices, states)
    off = q - jnp.mean(q, axis=0)
    covariance = jnp.einsum("kna,knb->nab", off, off) / len(q)
    return jnp.mean(q, axis=0), covariance, jnp.mean(greedy_policy(q), axis=0)


def _exceeds(gap: Float[Array, "*n"], variance: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return P(N(gap, variance) > 0), a half where the gap is 0."""
    spread = jnp.sqrt(jnp.maximum(variance, 1e-30))
    return jnp.where(gap == 0, 0.5, jax.scipy.stats.norm.cdf(gap / spread))


def _correlation(
    agent: Agent, agent_state: PyTree, q: Float[Array, "m k 2"], path: States, good: States
) -> Float[Array, "m m"]:
    """Return correlations of Q(s, good action) along the path: exact, or from the samples."""
    if agent.closed_form:
        places = 2 * jnp.arange(len(path)) + good
        covariance = agent.q_posterior(agent_state, path).covariance[places][:, places]
    else:
        chosen = jnp.take_along_axis(q, good[:, None, None], axis=2)[:, :, 0]
        covariance = jnp.atleast_2d(jnp.cov(chosen, bias=True))
    std = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), 0.0))
    scale = jnp.where(std > 0, 1 / jnp.maximum(std, 1e-30), 0.0)
    return (covariance * scale[:, None] * scale).astype(jnp.float16)


def _episodes(
    agent: Agent, env: Environment, params: Params, agent_state: PyTree, indices: Indices, key: PRNG
) -> tuple[Int[Array, "k horizon"], Bool[Array, " k"]]:
    """Return states of episodes with sampled policies, -1 after their end, and their success."""

    def one(pair):
        index, key = pair
        record = episodes.rollout(agent, env, params, agent_state, index, key)
        within = jnp.arange(env.horizon) < record.length
        path = jnp.where(within, record.transitions.obs, -1)
        return path, episodes.optimal(env, record.total)

    few = min(PATHS, indices[1])
    first = jax.tree.map(lambda x: x[:few], indices[0])
    return jax.lax.map(one, (first, jax.random.split(key, few)))


def _sampled_q(agent: Agent, agent_state: PyTree, indices: Indices, obs: Obs) -> Array:
    """Return Q under every index; some agents have an empty index."""
    each = (indices[0], jnp.arange(indices[1]))
    return jax.lax.map(lambda pair: agent.q(agent_state, pair[0], obs), each)
