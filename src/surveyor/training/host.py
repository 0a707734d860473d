"""The host runner: environments that step in Python or C++, an agent whose verbs are compiled."""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor._settings import keep_memory
from surveyor.agents.base import Agent
from surveyor.envs.host import HostEnvs
from surveyor.replay.steps import ENDED, Ring
from surveyor.runs.config import Config
from surveyor.training import episodes as compiled
from surveyor.training import steps
from surveyor.training.functional import DIAGNOSED
from surveyor.training.runner import Chunk, StepRunner
from surveyor.training.steps import Learning, Rhythm
from surveyor.types import EnvSpec, Transition

TURN_SECONDS = 0.5
"""How often a run hands over, so that it can be stopped."""


class HostLoop(eqx.Module):
    """All that changes while training, but for the environments themselves."""

    learning: Learning
    ring: Ring
    """Of NumPy arrays, which are written in place."""
    obs: np.ndarray


class Count(NamedTuple):
    """Environment steps and gradient steps taken."""

    step: int
    gradient_steps: int


class HostRunner(StepRunner):
    """Gymnasium and Atari. The environments are made when the first step is taken."""

    def __init__(
        self,
        config: Config,
        make: Callable[[int], HostEnvs],
        again: Callable[[int], HostEnvs] | None = None,
    ):
        super().__init__(config)
        self._make, self._again = make, again or make
        self._envs: HostEnvs | None = None
        self._key = compiled.run_keys(config.seed)[1]

    @property
    def envs(self) -> HostEnvs:
        """The environments that are played in training."""
        if self._envs is None:
            self._envs = self._make(self.config.agent.envs)
        return self._envs

    @property
    def spec(self) -> EnvSpec:
        return self.envs.spec

    @property
    def first_action(self) -> int:
        return self.envs.first_action

    def make(self, count: int) -> HostEnvs:
        """About so many environments of the same kind, for a test."""
        return self._again(count)

    def start(self) -> HostLoop:
        obs = self.envs.begin(self.config.seed)
        return self._blank(obs)

    def freeze(self, loop: HostLoop) -> tuple[PyTree, dict[str, Any]]:
        """Only the part of the replay that is filled."""
        rows = min(int(loop.ring.written), len(loop.ring.action))
        arrays = jax.tree.map(lambda x: x[:rows] if x.ndim else x, loop.ring)
        return (loop.learning, arrays, loop.obs), {"env": self.envs.snapshot()}

    def thaw(self, arrays: PyTree, more: dict[str, Any]) -> HostLoop:
        learning, ring, _ = arrays
        obs = self.envs.restore(self.config.seed, more["env"])
        if not self.envs.exact:  # then the episodes that were under way have been cut off
            ring.flags[(int(ring.written) - 1) % len(ring.flags)] |= ENDED
            episodes = learning.episodes
            none = (np.zeros_like(episodes.returns), np.zeros_like(episodes.lengths))
            begun = eqx.tree_at(lambda e: (e.returns, e.lengths), episodes, none)
            learning = eqx.tree_at(lambda learning: learning.episodes, learning, begun)
        return HostLoop(learning, ring, obs)

    def frozen_shape(self, replay: bool = True) -> PyTree:
        """As `freeze` gives it; the replay's arrays may be shorter."""
        obs = np.zeros((self.envs.count, *self.spec.shape), self.spec.dtype)
        key = compiled.run_keys(self.config.seed)[0]
        learning = jax.eval_shape(partial(steps.start, self.config.agent, self.spec), key)
        return learning, self._ring(self.config.agent.replay_capacity if replay else 0), obs

    def read(self, observation: np.ndarray) -> np.ndarray:
        return self.envs.read(observation)

    def chunks(self, loop: HostLoop) -> Iterator[Chunk]:
        keep_memory()
        rhythm, verbs = Rhythm.of(self.config.agent), Verbs(self.config.agent, self.spec)
        # Counted here as well: to ask the learner would mean to wait for it.
        count = Count(int(loop.learning.step), int(loop.learning.gradient_steps))
        handed_over, recorded, since = time.perf_counter(), time.perf_counter(), count.step
        while count.step < self.config.budget:
            loop, count = self._round(verbs, rhythm, loop, count)
            now = time.perf_counter()
            rounds, last = count.step // rhythm.steps, count.step >= self.config.budget
            if last or rounds % self.rounds_per_record == 0:
                loop, metrics = self._report(verbs, loop)
                record = self.record(loop, metrics, count.step - since, now - recorded)
                yield Chunk(loop, [record], now - handed_over)
                recorded = handed_over = time.perf_counter()
                since = count.step
            elif now - handed_over > TURN_SECONDS:
                yield Chunk(loop, [], now - handed_over)
                handed_over = time.perf_counter()
                recorded += handed_over - now  # what others did meanwhile is not training

    def close(self) -> None:
        if self._envs is not None:
            self._envs.close()

    def _blank(self, obs: np.ndarray) -> HostLoop:
        agent, spec = self.config.agent, self.spec
        key = compiled.run_keys(self.config.seed)[0]
        # Compiled, so that every array is a buffer of its own: all are donated.
        learning = jax.jit(partial(steps.start, agent, spec))(key)
        return HostLoop(learning, self._ring(agent.replay_capacity), obs)

    def _ring(self, capacity: int) -> Ring:
        priority, count = self.config.agent.priority > 0, self.envs.count
        return Ring.create(self.spec, capacity, count, priority=priority, host=True)

    def _round(
        self, verbs: "Verbs", rhythm: Rhythm, loop: HostLoop, count: "Count"
    ) -> tuple[HostLoop, "Count"]:
        agent, learning, ring, obs = self.config.agent, loop.learning, loop.ring, loop.obs
        key = self._key
        for _ in range(rhythm.acts):
            action = np.asarray(verbs.act(learning, obs, key))
            step = self.envs.step(action)
            over = (step.terminated, step.ended, step.skipped)
            ring = ring.add(obs, action, step.reward, step.final, *over)
            learning = verbs.observe(learning, obs, action, step, key)
            obs = step.obs
        taken, learnt = count.step + rhythm.steps, count.gradient_steps
        ready = taken > agent.warmup and int(ring.count(agent.n_step)) > 0
        for _ in range(rhythm.updates if ready else 0):
            u = np.random.default_rng([self.config.seed, learnt]).random(agent.batch_size)
            batch = ring.sample(u, agent.n_step, agent.discount)
            learning, errors = verbs.update(learning, batch, key)
            learnt += 1
            if errors is not None:
                ring = ring.reprioritise(batch.number, np.asarray(errors), agent.priority)
        return HostLoop(learning, ring, obs), Count(taken, learnt)

    def _report(self, verbs: "Verbs", loop: HostLoop) -> tuple[HostLoop, dict[str, Any]]:
        u = np.random.default_rng(self.config.seed).random(DIAGNOSED)
        obs = loop.ring.sample(u, 1, 1.0).obs if int(loop.ring.count(1)) else loop.obs
        learning, metrics = verbs.report(loop.learning, obs)
        return HostLoop(learning, loop.ring, loop.obs), metrics


class Verbs:
    """The functions of `steps`, compiled for one agent; the learner's state is donated to those
    that return it."""

    def __init__(self, agent: Agent, spec: EnvSpec):
        def act(learning, obs, key):
            key = jax.random.fold_in(jax.random.fold_in(key, 0), learning.step)
            return steps.act(agent, learning, spec, obs, key)

        def observe(learning, obs, action, reward, final, terminated, score, ended, skipped, key):
            key = jax.random.fold_in(jax.random.fold_in(key, 1), learning.step)
            transitions = Transition(obs, action, reward, final, terminated)
            return steps.observe(agent, learning, transitions, score, ended, key, ~skipped)

        def update(learning, batch, key):
            key = jax.random.fold_in(jax.random.fold_in(key, 2), learning.gradient_steps)
            return steps.update(agent, learning, batch, key)

        self.act = jax.jit(act)
        self._observe = jax.jit(observe, donate_argnums=0)
        self.update = jax.jit(update, donate_argnums=0)
        self.report = jax.jit(partial(steps.report, agent), donate_argnums=0)

    def observe(self, learning: Learning, obs: Any, action: Any, step: Any, key: Any) -> Learning:
        """Take in one step of every environment."""
        after = (step.reward, step.final, step.terminated, step.score, step.ended, step.skipped)
        return self._observe(learning, obs, action, *after, key)


def play(
    agent: Agent, state: PyTree, envs: HostEnvs, episodes: int, seed: int, see: Any = None
) -> tuple[list[float], list[int]]:
    """Score and length of greedy episodes.

    Each environment plays its share of them, so that short episodes are not preferred. `see` is
    called with the observations and actions of every step.
    """
    index = agent.greedy(state)
    act = jax.jit(lambda obs, u: jax.vmap(partial(agent.act, state, index))(obs, u))
    obs, rng = envs.begin(seed), np.random.default_rng(seed)
    share = [len(range(e, episodes, envs.count)) for e in range(envs.count)]
    totals, lengths = np.zeros(envs.count), np.zeros(envs.count, int)
    scores: list[list[float]] = [[] for _ in share]
    spans: list[list[int]] = [[] for _ in share]
    while any(len(done) < due for done, due in zip(scores, share, strict=True)):
        u = rng.random((envs.count, envs.spec.num_actions), np.float32)
        action = np.asarray(act(jnp.asarray(obs), u))
        if see is not None:
            see(obs, action)
        step = envs.step(action)
        totals, lengths = totals + step.score, lengths + ~step.skipped
        for e in np.flatnonzero(step.ended & ~step.skipped):
            if len(scores[e]) < share[e]:
                scores[e].append(float(totals[e]))
                spans[e].append(int(lengths[e]))
            totals[e], lengths[e] = 0.0, 0
        obs = step.obs
    return list(itertools.chain(*scores)), list(itertools.chain(*spans))
