"""What an agent believes, written down now and then while it trains: the data of the report."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.agents.ube import UBE
from surveyor.envs.base import Environment, Params
from surveyor.runs.folder import RunFolder
from surveyor.runs.run import Run
from surveyor.training import episodes as compiled
from surveyor.types import State

SIDE = 160
"""A picture has at most so many rows and columns of states."""
SAMPLES = 64
"""Posterior samples, for probabilities and where a belief has no closed form."""
MANY = 512
"""The same of Q along the optimal path, where a sample costs next to nothing."""
PATHS = 8
"""Sampled policies whose episodes are kept."""
OBSERVATIONS = 6
"""Observations whose Q values are followed where states are not numbers."""
OBSERVED = "observations"
Indices = tuple[PyTree, int]
"""Several of them, as an agent's `several` gives them."""
SOON: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
"""Compiler options for a program that is better ready soon than fast."""


def strided(along_path: Any) -> Any:
    """Of what lies along the optimal path, no more than can be shown."""
    return along_path[:: -(-len(along_path) // SIDE)]


def samples(
    agent: Agent, state: State, obs: Shaped[Array, "n ..."], key: Key[Array, ""], count: int
) -> Float[Array, "k n actions"]:
    """Q values under several indices."""
    return _each(lambda index: agent.q(state, index, obs), agent.several(state, key, count))


def votes(q: Float[Array, "k n actions"]) -> Float[Array, "k n actions"]:
    """How likely each sample is to take each action: the best for certain, equals by chance."""
    best = (q == jnp.max(q, axis=-1, keepdims=True)).astype(jnp.float32)
    return best / jnp.sum(best, axis=-1, keepdims=True)


@eqx.filter_jit
def ask(
    agent: Agent, state: State, obs: Shaped[Array, "n ..."], key: Key[Array, ""]
) -> dict[str, Array]:
    """Mean and standard deviation of Q, and how likely each action is, for some observations."""
    q = samples(agent, state, obs, key, SAMPLES)
    mean, std = jnp.mean(q, axis=0), jnp.std(q, axis=0)
    if agent.closed_form:
        belief = agent.q_posterior(state, obs)
        mean = belief.mean
        variance = jnp.diagonal(belief.covariance)
        std = jnp.sqrt(jnp.maximum(variance, 0.0)).reshape(std.shape)
    return {"mean": mean, "std": std, "probability": jnp.mean(votes(q), axis=0)}


def observations(run: Run, folder: RunFolder) -> np.ndarray | None:
    """Those that the agent is asked about: from its replay, when its random steps are over."""
    try:
        return folder.read_snapshot(OBSERVED)["obs"]
    except (OSError, ValueError, KeyError):
        pass
    ring = run.loop.ring
    if int(run.loop.learning.step) < run.agent.warmup or int(ring.count(1)) < OBSERVATIONS:
        return None
    u = (np.arange(4 * OBSERVATIONS, dtype=np.float32) + 0.5) / (4 * OBSERVATIONS)
    obs = np.asarray(ring.sample(u, 1, 1.0).obs)
    first = np.unique(obs.reshape(len(obs), -1), axis=0, return_index=True)[1]  # no two alike
    obs = obs[np.sort(first)[:: -(-len(first) // OBSERVATIONS)]]
    folder.write_snapshot(OBSERVED, {"obs": obs})
    return obs


@functools.lru_cache(maxsize=4)
def on_a_map(agent: Agent, env: Environment) -> Callable[..., dict[str, Array]] | None:
    """A program that looks at every state of a picture, for all seeds of a problem."""
    layout = env.layout(SIDE)
    if layout is None:
        return None
    n, path = len(layout.states), jnp.asarray(layout.path)
    states = jnp.concatenate([jnp.asarray(layout.states), path])

    def program(state: State, visits: Int[Array, "states actions"], params: Params, key):
        sample_key, play_key, path_key = jax.random.split(key, 3)
        indices = agent.several(state, sample_key, SAMPLES)
        good = env.good(params, states)
        both = jnp.stack([good, 1 - good], axis=1)
        take = lambda x: jnp.take_along_axis(x, both, axis=1)  # noqa: E731
        mean, covariance, likely = _marginals(agent, state, indices, states)
        mean = take(mean)
        variance = take(jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2), 0.0))
        along = _along(agent, state, indices, path, path_key)
        shown = map(strided, (along.swapaxes(0, 1), path, good[n:]))
        paths, succeeded = _episodes(agent, env, params, state, indices, play_key)
        return {
            "visits": take(visits[states])[:n],
            "mean": mean[:n],
            "std": jnp.sqrt(variance[:n]),
            "probability": take(likely)[:n, 0],
            "paths": paths,
            "succeeded": succeeded,
            "joint": jnp.mean(jnp.prod(votes(along)[:, jnp.arange(len(path)), good[n:]], axis=1)),
            "joint_samples": jnp.asarray(len(along)),
            "log10_factorised": _factorised(mean[n:], variance[n:]),
            "correlation": _correlation(agent, state, *shown),
        }

    key = jax.random.key(0)
    loop = jax.eval_shape(lambda: compiled.start(agent, env, key))
    lowered = jax.jit(program).lower(loop.agent, loop.visits, env.default_params, key)
    # At level 0 some of the normal draws that UBE makes for every state are NaN.
    level = {"xla_backend_optimization_level": "1"} if isinstance(agent, UBE) else {}
    return lowered.compile(compiler_options={**SOON, **level})


def _along(
    agent: Agent, state: State, indices: Indices, path: Int[Array, " m"], key: Key[Array, ""]
) -> Float[Array, "k m 2"]:
    """Q along the path, under more samples than those if they are cheap."""
    if not agent.closed_form:
        return _each(lambda index: agent.q(state, index, path), indices)
    draw = jax.vmap(lambda key: agent.q(state, agent.sample(state, key), path))
    return draw(jax.random.split(key, MANY))


def _marginals(
    agent: Agent, state: State, indices: Indices, states: Int[Array, " n"]
) -> tuple[Float[Array, "n 2"], Float[Array, "n 2 2"], Float[Array, "n 2"]]:
    """For each state by itself: mean and covariance of Q, and how likely each action is."""
    if agent.closed_form:
        each = jax.vmap(lambda one: agent.q_posterior(state, one[None]))(states)
        mean, covariance = each.mean[:, 0], each.covariance
        spread = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
        first = _exceeds(mean[:, 0] - mean[:, 1], spread)
        return mean, covariance, jnp.stack([first, 1 - first], axis=1)
    q = _each(lambda index: agent.q(state, index, states), indices)
    off = q - jnp.mean(q, axis=0)
    covariance = jnp.einsum("kna,knb->nab", off, off) / len(q)
    return jnp.mean(q, axis=0), covariance, jnp.mean(votes(q), axis=0)


def _exceeds(gap: Float[Array, "*n"], variance: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """P(N(gap, variance) > 0), a half where it is certain to be 0."""
    spread = jnp.sqrt(jnp.maximum(variance, 1e-30))
    return jnp.where(gap == 0, 0.5, jax.scipy.stats.norm.cdf(gap / spread))


def _factorised(mean: Float[Array, "m 2"], variance: Float[Array, "m 2"]) -> Float[Array, ""]:
    """Proposition 1: the logarithm of how likely the good action would be all along the optimal
    path if Q values of these means and variances were independent."""
    likely = _exceeds(mean[:, 0] - mean[:, 1], jnp.sum(variance, axis=1))
    return jnp.sum(jnp.log10(jnp.maximum(likely, 1e-30)))


def _correlation(
    agent: Agent,
    state: State,
    q: Float[Array, "m k 2"],
    path: Int[Array, " m"],
    good: Int[Array, " m"],
) -> Float[Array, "m m"]:
    """Of Q(s, good action) along the path: exact, or else from the samples."""
    if agent.closed_form:
        places = 2 * jnp.arange(len(path)) + good
        covariance = agent.q_posterior(state, path).covariance[places][:, places]
    else:
        chosen = jnp.take_along_axis(q, good[:, None, None], axis=2)[:, :, 0]
        covariance = jnp.atleast_2d(jnp.cov(chosen, bias=True))
    std = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), 0.0))
    scale = jnp.where(std > 0, 1 / jnp.maximum(std, 1e-30), 0.0)
    return (covariance * scale[:, None] * scale).astype(jnp.float16)


def _episodes(
    agent: Agent,
    env: Environment,
    params: Params,
    state: State,
    indices: Indices,
    key: Key[Array, ""],
) -> tuple[Int[Array, "k horizon"], Bool[Array, " k"]]:
    """The states of episodes with sampled policies, -1 after their end; and whether their returns
    were optimal. Among equals each policy chooses for itself."""

    def one(pair):
        index, key = pair
        record = compiled.rollout(agent, env, params, state, index, key)
        within = jnp.arange(env.horizon) < record.length
        path = jnp.where(within, record.transitions.obs, -1)
        return path, compiled.optimal(env, record.total)

    few = min(PATHS, indices[1])
    first = jax.tree.map(lambda x: x[:few], indices[0])
    return jax.lax.map(one, (first, jax.random.split(key, few)))


def _each(function: Callable[[PyTree], Any], indices: Indices) -> Any:
    """Of every index; there are agents whose index is nothing."""
    return jax.lax.map(lambda pair: function(pair[0]), (indices[0], jnp.arange(indices[1])))
