"""What an agent believes, written down now and then while it trains: the data of the report."""

import functools
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree, Shaped

from surveyor.agents.base import Agent
from surveyor.envs.base import Environment, Params
from surveyor.training import compiled
from surveyor.training.folder import RunFolder
from surveyor.training.progress import done
from surveyor.training.run import Run
from surveyor.training.runner import EpisodeRunner
from surveyor.types import State

SIDE = 160
"""A picture has at most so many rows and columns of states."""
SAMPLES = 64
"""Posterior samples, for probabilities and where a belief has no closed form."""
PATHS = 8
"""Sampled policies whose episodes are kept."""
OBSERVATIONS = 6
"""Observations whose Q values are followed where states are not numbers."""
FREE_SECONDS = 0.3
"""Time that looking may always take, beside compilation;"""
SHARE = 0.02
"""beyond that no more than this share of the time spent training."""
OBSERVED = "observations"
SOON: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
"""Compiler options for a program that is better ready soon than fast."""


class Recorder:
    """Looks at a run before its first episode, then after times that grow by half an octave, and
    at its end."""

    def __init__(self, run: Run, folder: RunFolder):
        self._run, self._folder = run, folder
        self._spent, self._seen, self._off = 0.0, False, False
        now, every = done(run.result), run.runner.every
        # What was written after the checkpoint is written again, by the same bits.
        self._last = max((at for at in folder.belief_times() if at <= now), default=-1)
        self._times = [0, *(round(2 ** (k / 2)) * every for k in range(64))]
        run.runner.pauses = self._next
        self._program: Future[Callable[..., dict[str, Array]] | None] | None = None
        self._waiting: list[tuple[int, PyTree]] = []
        """Times at which the program was not ready, and what it is to look at."""
        if isinstance(run.runner, EpisodeRunner):
            with_thread = ThreadPoolExecutor(1)  # while the training itself is compiled
            self._program = with_thread.submit(_tabular, run.agent, run.runner.env)
            with_thread.shutdown(wait=False)

    def __call__(self) -> None:
        """Look, if it is time."""
        run = self._run
        if self._off:
            return
        now, allowed = done(run.result), max(FREE_SECONDS, SHARE * run.seconds)
        ends = run.finished and now > self._last
        if not ends and (now < self._next(self._last) or self._spent > allowed):
            return
        began, self._last = time.monotonic(), now
        try:
            wrote = self._ask(now) if self._program is None else self._look(now, self._program)
        except Exception as error:  # a run is worth more than a look at it
            self._off = True
            said = f"What the agent believes is not written down any more: {error}"
            warnings.warn(said, stacklevel=2)
            return
        if self._seen:  # the first time may be mostly compilation
            self._spent += time.monotonic() - began
        self._seen = self._seen or wrote

    def _next(self, at: int) -> int:
        return next(time for time in self._times if time > at)

    def _look(self, now: int, program: Future[Any]) -> bool:
        """On a map of states, when its program is ready; until then copies are kept, because
        training takes the memory of what it goes on from."""
        run, ready = self._run, program.done() or self._run.finished
        assert isinstance(run.runner, EpisodeRunner)
        seen = run.loop.agent, run.loop.visits
        self._waiting.append((now, seen if ready else jax.tree.map(jnp.copy, seen)))
        if not ready:
            return False
        look, params = program.result(), run.runner.env.params(run.config.seed)
        if look is not None:
            for at, (agent, visits) in self._waiting:
                key = jax.random.fold_in(jax.random.key(run.config.seed), at)
                self._write(at, look(agent, visits, params, key))
        self._waiting.clear()
        return look is not None

    def _ask(self, now: int) -> bool:
        """About a few observations, once there are any."""
        run, observations = self._run, _observations(self._run, self._folder)
        if observations is None:
            return False
        self._write(now, ask(run.agent, run.state, jnp.asarray(observations), jax.random.key(0)))
        return True

    def _write(self, at: int, found: dict[str, Array]) -> None:
        self._folder.write_belief(at, {name: np.asarray(value) for name, value in found.items()})


def strided(along_path: Any) -> Any:
    """Of what lies along the optimal path, no more than can be shown."""
    return along_path[:: -(-len(along_path) // SIDE)]


def samples(
    agent: Agent, state: State, obs: Shaped[Array, "n ..."], key: Key[Array, ""], count: int
) -> Float[Array, "k n actions"]:
    """Q values under several indices."""
    draw = lambda key: agent.q(state, agent.sample(state, key), obs)  # noqa: E731
    return jax.lax.map(draw, jax.random.split(key, count))


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
    mean, std = jnp.mean(q, axis=0), jnp.std(q, axis=0, ddof=1)
    if agent.closed_form:
        belief = agent.q_posterior(state, obs)
        mean = belief.mean
        variance = jnp.diagonal(belief.covariance)
        std = jnp.sqrt(jnp.maximum(variance, 0.0)).reshape(std.shape)
    return {"mean": mean, "std": std, "probability": jnp.mean(votes(q), axis=0)}


def _observations(run: Run, folder: RunFolder) -> np.ndarray | None:
    """Those that the agent is asked about: from its replay, when its random steps are over."""
    try:
        return folder.belief(OBSERVED)["obs"]
    except (OSError, ValueError, KeyError):
        pass
    ring = run.loop.ring
    if int(run.loop.learning.step) < run.agent.warmup or int(ring.count(1)) < OBSERVATIONS:
        return None
    u = (np.arange(OBSERVATIONS, dtype=np.float32) + 0.5) / OBSERVATIONS
    obs = np.asarray(ring.sample(u, 1, 1.0).obs)
    folder.write_belief(OBSERVED, {"obs": obs})
    return obs


@functools.lru_cache(maxsize=4)
def _tabular(agent: Agent, env: Environment) -> Callable[..., dict[str, Array]] | None:
    """A program that looks at every state of a picture, for all seeds of a problem."""
    layout = env.layout(SIDE)
    if layout is None:
        return None
    n, path = len(layout.states), jnp.asarray(layout.path)
    states = jnp.concatenate([jnp.asarray(layout.states), path])

    def program(state: State, visits: Int[Array, "states actions"], params: Params, key):
        sample_key, play_key = jax.random.split(key)
        sample_keys = jax.random.split(sample_key, SAMPLES)
        indices = jax.lax.map(lambda key: agent.sample(state, key), sample_keys)
        good = env.good(params, states)
        both = jnp.stack([good, 1 - good], axis=1)
        take = lambda x: jnp.take_along_axis(x, both, axis=1)  # noqa: E731
        mean, covariance, likely = _marginals(agent, state, indices, states)
        mean = take(mean)
        variance = take(jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2), 0.0))
        along = _each(lambda index: agent.q(state, index, path), indices, SAMPLES)
        shown = map(strided, (along.swapaxes(0, 1), path, good[n:]))
        few = jax.tree.map(lambda x: x[:PATHS], indices)
        return {
            "visits": take(visits[states])[:n],
            "mean": mean[:n],
            "std": jnp.sqrt(variance[:n]),
            "probability": take(likely)[:n, 0],
            "paths": _episodes(agent, env, params, state, few, play_key),
            "joint": jnp.mean(jnp.prod(votes(along)[:, jnp.arange(len(path)), good[n:]], axis=1)),
            "log10_factorised": _factorised(mean[n:], variance[n:]),
            "correlation": _correlation(agent, state, *shown),
        }

    key = jax.random.key(0)
    loop = jax.eval_shape(lambda: compiled.start(agent, env, key))
    lowered = jax.jit(program).lower(loop.agent, loop.visits, env.default_params, key)
    return lowered.compile(compiler_options=SOON)


def _marginals(
    agent: Agent, state: State, indices: PyTree, states: Int[Array, " n"]
) -> tuple[Float[Array, "n 2"], Float[Array, "n 2 2"], Float[Array, "n 2"]]:
    """For each state by itself: mean and covariance of Q, and how likely each action is."""
    if agent.closed_form:
        each = jax.vmap(lambda one: agent.q_posterior(state, one[None]))(states)
        mean, covariance = each.mean[:, 0], each.covariance
        spread = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
        first = _exceeds(mean[:, 0] - mean[:, 1], spread)
        return mean, covariance, jnp.stack([first, 1 - first], axis=1)
    q = _each(lambda index: agent.q(state, index, states), indices, SAMPLES)
    off = q - jnp.mean(q, axis=0)
    covariance = jnp.einsum("kna,knb->nab", off, off) / (SAMPLES - 1)
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
        covariance = jnp.atleast_2d(jnp.cov(chosen))
    std = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), 0.0))
    scale = jnp.where(std > 0, 1 / jnp.maximum(std, 1e-30), 0.0)
    return (covariance * scale[:, None] * scale).astype(jnp.float16)


def _episodes(
    agent: Agent,
    env: Environment,
    params: Params,
    state: State,
    indices: PyTree,
    key: Key[Array, ""],
) -> Int[Array, "k horizon"]:
    """The states of episodes with sampled policies; -1 after their end."""

    def one(index):
        record = compiled.rollout(agent, env, params, state, index, key)
        within = jnp.arange(env.horizon) < record.length
        return jnp.where(within, record.transitions.obs, -1)

    return _each(one, indices, PATHS)


def _each(function: Callable[[PyTree], Array], indices: PyTree, count: int) -> Array:
    """Of every index; there are agents whose index is nothing."""
    return jax.lax.map(lambda pair: function(pair[0]), (indices, jnp.arange(count)))
