"""Learning by steps around environments that step in Python or C++, with compiled verbs."""

import itertools
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor._settings import keep_memory
from surveyor.agents.base import Agent
from surveyor.envs.host import HostEnvs, HostMaker, HostStep
from surveyor.replay.steps import ENDED, StepReplay
from surveyor.training import steps
from surveyor.training.episodes import run_keys
from surveyor.training.functional import DIAGNOSED
from surveyor.training.runner import Chunk, Played, See, StepRunner, Task
from surveyor.training.steps import Learning
from surveyor.types import EnvSpec, Transition

PLAY_SEED = 10**9
"""Added to the seeds of evaluations, so that they are far from those of training."""
PLAY_ENVS = 8
"""Largest number of environments that an evaluation plays side by side."""
TURN_SECONDS = 0.5
"""Seconds between two chunks, where a run can be stopped."""


class HostLoop(eqx.Module):
    """Everything that changes while training, but for the environments themselves."""

    learning: Learning
    replay: StepReplay
    """Of NumPy arrays, which are written in place."""
    obs: np.ndarray


class Count(NamedTuple):
    """Environment steps and gradient steps taken."""

    step: int
    gradient_steps: int


class HostRunner(StepRunner):
    """Gymnasium and Atari. The environments are made when the first step is taken."""

    def __init__(self, task: Task, maker: HostMaker):
        super().__init__(task)
        self._maker = maker
        self._envs: HostEnvs | None = None
        self._key = run_keys(task.seed)[1]

    @property
    def envs(self) -> HostEnvs:
        """The environments of training."""
        if self._envs is None:
            self._envs = self._maker.make(self.task.agent.schedule.envs)
        return self._envs

    @property
    def spec(self) -> EnvSpec:
        return self.envs.spec

    @property
    def first_action(self) -> int:
        return self.envs.first_action

    def start(self) -> HostLoop:
        obs = self.envs.begin(self.task.seed)
        key = run_keys(self.task.seed)[0]
        # Compiled, so that every array is a buffer of its own: all are donated.
        learning = jax.jit(partial(steps.start, self.task.agent, self.spec))(key)
        return HostLoop(learning, self._replay(), obs)

    def freeze(self, loop: HostLoop) -> tuple[PyTree, dict[str, Any]]:
        """Return the loop with only the filled part of its replay, and the environments."""
        rows = min(int(loop.replay.written), len(loop.replay.action))
        arrays = jax.tree.map(lambda x: x[:rows] if x.ndim else x, loop.replay)
        return (loop.learning, arrays, loop.obs), {"env": self.envs.snapshot()}

    def thaw(self, arrays: PyTree, more: dict[str, Any]) -> HostLoop:
        learning, replay, _ = arrays
        obs = self.envs.restore(self.task.seed, more["env"])
        if not self.envs.exact:  # then the episodes that were under way have been cut off
            replay.flags[(int(replay.written) - 1) % len(replay.flags)] |= ENDED
            episodes = learning.episodes
            none = (np.zeros_like(episodes.returns), np.zeros_like(episodes.lengths))
            begun = eqx.tree_at(lambda e: (e.returns, e.lengths), episodes, none)
            learning = eqx.tree_at(lambda learning: learning.episodes, learning, begun)
        return HostLoop(learning, replay, obs)

    def frozen_shape(self, replay: bool = True) -> PyTree:
        """Return the shape of what `freeze` gives; the replay's arrays may be shorter."""
        obs = np.zeros((self.envs.count, *self.spec.shape), self.spec.dtype)
        key = run_keys(self.task.seed)[0]
        learning = jax.eval_shape(partial(steps.start, self.task.agent, self.spec), key)
        return learning, self._replay(-1 if replay else 0), obs

    def read(self, observation: np.ndarray) -> np.ndarray:
        return self.envs.read(observation)

    def chunks(self, loop: HostLoop) -> Iterator[Chunk]:
        keep_memory()
        verbs = Verbs(self.task.agent, self.spec)
        # Counted here as well: asking the learner would mean waiting for it.
        count = Count(int(loop.learning.step), int(loop.learning.gradient_steps))
        handed_over, recorded, since = time.perf_counter(), time.perf_counter(), count.step
        while count.step < self.task.budget:
            loop, count = self._round(verbs, loop, count)
            now = time.perf_counter()
            rounds, last = count.step // self.round.steps, count.step >= self.task.budget
            if last or rounds % self.rounds_per_record == 0:
                loop, metrics = self._report(verbs, loop)
                record = self.record(loop, metrics, count.step - since, now - recorded)
                yield Chunk(loop, [record], now - handed_over)
                recorded = handed_over = time.perf_counter()
                since = count.step
            elif now - handed_over > TURN_SECONDS:
                yield Chunk(loop, [], now - handed_over)
                handed_over = time.perf_counter()
                recorded += handed_over - now  # the time in between is not training

    def close(self) -> None:
        if self._envs is not None:
            self._envs.close()

    def play(self, agent_state: PyTree, episodes: int, seed: int) -> Played:
        envs = self._maker.again(min(episodes, PLAY_ENVS))
        try:
            return play(self.task.agent, agent_state, envs, episodes, PLAY_SEED + seed)
        finally:
            envs.close()

    def film(self, agent_state: PyTree, seed: int, see: See) -> None:
        envs = self._maker.again(1)
        try:
            one = lambda obs, action: see(obs[0], envs.picture, int(action[0]))  # noqa: E731
            play(self.task.agent, agent_state, envs, 1, PLAY_SEED + seed, one)
        finally:
            envs.close()

    def _replay(self, size: int = -1) -> StepReplay:
        return steps.empty_replay(self.task.agent, self.spec, host=True, size=size)

    def _round(self, verbs: "Verbs", loop: HostLoop, count: Count) -> tuple[HostLoop, Count]:
        schedule, key = self.task.agent.schedule, self._key
        learning, replay, obs = loop.learning, loop.replay, loop.obs
        for _ in range(self.round.acts):
            action = np.asarray(verbs.act(learning, obs, key))
            step = self.envs.step(action)
            after: Any = (step.reward, step.final, step.terminated)
            seen: Any = (obs, action)
            replay = replay.add(Transition(*seen, *after), step.ended, step.skipped)
            learning = verbs.observe(learning, obs, action, step, key)
            obs = step.obs
        taken, learnt = count.step + self.round.steps, count.gradient_steps
        ready = taken > schedule.warmup and int(replay.count) > 0
        for _ in range(self.round.updates if ready else 0):
            u = np.random.default_rng([self.task.seed, learnt]).random(schedule.batch_size)
            batch = replay.sample(u)
            learning, errors = verbs.update(learning, batch, key)
            learnt += 1
            if replay.priority is not None:
                replay = replay.update_priorities(batch.number, np.asarray(errors))
        return HostLoop(learning, replay, obs), Count(taken, learnt)

    def _report(self, verbs: "Verbs", loop: HostLoop) -> tuple[HostLoop, dict[str, Any]]:
        u = np.random.default_rng(self.task.seed).random(DIAGNOSED)
        obs = loop.replay.observations(u) if int(loop.replay.count) else loop.obs
        learning, metrics = verbs.report(loop.learning, obs)
        return HostLoop(learning, loop.replay, loop.obs), metrics


class Verbs:
    """The functions of `steps`, compiled for one agent; they take over the state they return."""

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

    def observe(
        self, learning: Learning, obs: np.ndarray, action: np.ndarray, step: HostStep, key: Any
    ) -> Learning:
        """Observe one step of every environment."""
        after = (step.reward, step.final, step.terminated, step.score, step.ended, step.skipped)
        return self._observe(learning, obs, action, *after, key)


def play(
    agent: Agent, agent_state: PyTree, envs: HostEnvs, episodes: int, seed: int, see: Any = None
) -> Played:
    """Play greedy episodes; `see` is called with the observations and actions of every step.

    Each environment plays its share of them, so that short episodes are not preferred.
    """
    index = agent.greedy(agent_state)
    act = jax.jit(lambda obs, u: jax.vmap(partial(agent.act, agent_state, index))(obs, u))
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
    return Played(list(itertools.chain(*scores)), list(itertools.chain(*spans)))
