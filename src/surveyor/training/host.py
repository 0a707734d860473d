"""Learning by steps around environments that step in Python or C++, with compiled verbs."""

import itertools
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor._settings import keep_memory
from surveyor.agents.base import Agent
from surveyor.envs.host import HostEnvs, HostMaker
from surveyor.envs.stacking import StackedEnvs
from surveyor.replay.steps import ENDED, StepReplay
from surveyor.training import steps
from surveyor.training.functional import DIAGNOSED, StepLoop
from surveyor.training.runner import CHUNK_SECONDS, Chunk, Frozen, Played, See, StepRunner
from surveyor.types import EnvSpec, Transition

PLAY_SEED = 10**9
"""Added to the seeds of evaluations, so that they are far from those of training."""
PLAY_ENVS = 8
"""Largest number of environments that an evaluation plays side by side."""


class Verbs:
    """The functions of `steps`, compiled for one agent; they take over the state they return."""

    def __init__(self, agent: Agent, spec: EnvSpec):
        def act(learning, obs, key, legal):
            key = jax.random.fold_in(jax.random.fold_in(key, 0), learning.step)
            return steps.act(agent, learning, spec, obs, key, legal)

        def observe(learning, obs, action, step, key):
            key = jax.random.fold_in(jax.random.fold_in(key, 1), learning.step)
            transitions = Transition(obs, action, step.reward, step.final, step.terminated)
            seen = (step.score, step.ended, key, ~step.skipped)
            return steps.observe(agent, learning, transitions, *seen)

        def update(learning, batch, key):
            key = jax.random.fold_in(jax.random.fold_in(key, 2), learning.gradient_steps)
            return steps.update(agent, learning, batch, key)

        self.act = jax.jit(act)
        self.observe = jax.jit(observe, donate_argnums=0)
        self.update = jax.jit(update, donate_argnums=0)
        self.report = jax.jit(partial(steps.report, agent), donate_argnums=0)


class HostRunner(StepRunner):
    """Gymnasium and Atari. The environments are made when the first step is taken.

    They are no part of its loop, whose replay is of NumPy arrays, which are written in place.
    """

    env: HostMaker

    @cached_property
    def envs(self) -> HostEnvs:
        """The environments of training."""
        return self._stacked(self.env.make(self.task.agent.schedule.envs))

    @property
    def spec(self) -> EnvSpec:
        return self.envs.spec

    @property
    def first_action(self) -> int:
        return self.envs.first_action

    def start(self) -> StepLoop:
        obs = self.envs.begin(self.task.seed)
        # Compiled, so that every array is a buffer of its own: all are donated.
        learning = jax.jit(partial(steps.start, self.agent, self.spec))(self.init_key)
        replay = StepReplay.create(self.spec, self.task.agent.schedule, host=True)
        return StepLoop(learning, replay, None, obs)

    def freeze(self, loop: StepLoop) -> Frozen:
        """Return the loop in parts, and the environments."""
        ring, rest = loop.replay.split()
        return Frozen((loop.learning, rest, loop.obs), ring, {"env": self.envs.snapshot()})

    def thaw(self, frozen: Frozen) -> StepLoop:
        learning, rest, _ = frozen.state
        obs = self.envs.restore(self.task.seed, frozen.more["env"])
        replay = jax.tree.map(np.array, rest)  # copies, which can be written
        if not self.envs.exact:  # then the episodes that were under way have been cut off
            replay.flags[(int(replay.written) - 1) % len(replay.flags)] |= ENDED
            under_way = attrgetter("episodes.returns", "episodes.lengths")
            learning = eqx.tree_at(under_way, learning, replace_fn=np.zeros_like)
        replay = replay if frozen.ring is None else replay.joined(frozen.ring)
        return StepLoop(learning, replay, None, obs)

    def frozen_shape(self, replay: bool = True) -> Frozen:
        """Return the shape of what `freeze` gives; the ring has arrays to read rows into."""
        self.envs.begin(self.task.seed)  # which tells whether there is a mask
        obs = np.zeros((self.envs.count, *self.spec.shape), self.spec.dtype)
        learning = jax.eval_shape(partial(steps.start, self.agent, self.spec), self.init_key)
        create = partial(StepReplay.create, self.spec, self.task.agent.schedule)
        rest = jax.eval_shape(lambda: create().split()[1])  # allocates nothing
        return Frozen((learning, rest, obs), create(host=True).split()[0] if replay else None, {})

    def read(self, observation: Any) -> np.ndarray:
        return self.envs.read(observation)

    def read_mask(self, observation: Any, given: Any) -> np.ndarray | None:
        if not self.spec.masked:
            return super().read_mask(observation, given)
        return self.envs.read_mask(observation, given)

    def chunks(self, loop: StepLoop) -> Iterator[Chunk]:
        keep_memory()
        verbs = Verbs(self.agent, self.spec)
        # Counted here as well: asking the learner would mean waiting for it.
        step, learnt = int(loop.learning.step), int(loop.learning.gradient_steps)
        recorded = handed_over = time.perf_counter()
        since, pause = step, self.pauses(step)
        while step < self.task.budget:
            step += self.round.steps
            loop, learnt = self._round(verbs, loop, step, learnt)
            now = time.perf_counter()
            last = step >= self.task.budget
            if last or step // self.round.steps % self.rounds_per_record == 0:
                u = np.random.default_rng(self.task.seed).random(DIAGNOSED)
                obs = loop.replay.observations(u) if int(loop.replay.count) else loop.obs
                learning, metrics = verbs.report(loop.learning, obs)
                loop = replace(loop, learning=learning)
                record = self.record(loop, metrics, step - since, now - recorded)
                yield Chunk(loop, [record], now - handed_over)
                recorded = handed_over = time.perf_counter()
                since = step
            elif step >= pause or now - handed_over > CHUNK_SECONDS:
                yield Chunk(loop, [], now - handed_over)
                handed_over = time.perf_counter()
                recorded += handed_over - now  # the time in between is not training
            pause = pause if step < pause else self.pauses(step)

    def close(self) -> None:
        if "envs" in vars(self):  # they have been made
            self.envs.close()

    def play(self, agent_state: PyTree, episodes: int, seed: int) -> Played:
        with closing(self._again(min(episodes, PLAY_ENVS))) as envs:
            return play(self.agent, agent_state, envs, episodes, PLAY_SEED + seed)

    def film(self, agent_state: PyTree, seed: int, see: See) -> None:
        with closing(self._again(1)) as envs:
            one = lambda obs, action: see(obs[0], envs.picture, int(action[0]))  # noqa: E731
            play(self.agent, agent_state, envs, 1, PLAY_SEED + seed, one)

    def _again(self, count: int) -> HostEnvs:
        """Return environments for an evaluation."""
        return self._stacked((self.env.again or self.env.make)(count))

    def _stacked(self, envs: HostEnvs) -> HostEnvs:
        frames = self.task.frame_stack
        return StackedEnvs(envs, frames) if frames else envs

    def _round(self, verbs: Verbs, loop: StepLoop, taken: int, learnt: int) -> tuple[StepLoop, int]:
        """Act and learn for one round, up to `taken` steps; return the gradient steps too."""
        schedule, key = self.task.agent.schedule, self.train_key
        learning, replay, obs = loop.learning, loop.replay, loop.obs
        for _ in range(self.round.acts):
            action = np.asarray(verbs.act(learning, obs, key, self.envs.legal))
            step = self.envs.step(action)
            seen: Any = (obs, action, step.reward, step.final, step.terminated)
            mask: Any = {"next_legal": step.final_legal}
            replay = replay.add(Transition(*seen, **mask), step.ended, step.skipped)
            learning = verbs.observe(learning, obs, action, step, key)
            obs = step.obs
        ready = taken > schedule.warmup and int(replay.count) > 0
        for _ in range(self.round.updates if ready else 0):
            u = np.random.default_rng([self.task.seed, learnt]).random(schedule.batch_size)
            batch = replay.sample(u)
            learning, errors = verbs.update(learning, batch, key)
            learnt += 1
            replay = replay.update_priorities(batch.number, errors)
        return StepLoop(learning, replay, None, obs), learnt


def play(
    agent: Agent, agent_state: PyTree, envs: HostEnvs, episodes: int, seed: int, see: Any = None
) -> Played:
    """Play greedy episodes; `see` is called with the observations and actions of every step.

    Each environment plays its share of them, so that short episodes are not preferred.
    """
    index = agent.greedy(agent_state)
    act = jax.jit(lambda *seen: jax.vmap(partial(agent.act, agent_state, index))(*seen))
    obs, rng = envs.begin(seed), np.random.default_rng(seed)
    share = [len(range(e, episodes, envs.count)) for e in range(envs.count)]
    totals, lengths = np.zeros(envs.count), np.zeros(envs.count, int)
    played: list[list[tuple[float, int]]] = [[] for _ in share]
    while any(len(done) < due for done, due in zip(played, share, strict=True)):
        u = rng.random((envs.count, envs.spec.num_actions), np.float32)
        mask = () if envs.legal is None else (envs.legal,)
        action = np.asarray(act(jnp.asarray(obs), u, *mask))
        if see is not None:
            see(obs, action)
        step = envs.step(action)
        totals, lengths = totals + step.score, lengths + ~step.skipped
        for e in np.flatnonzero(step.ended & ~step.skipped):
            if len(played[e]) < share[e]:
                played[e].append((float(totals[e]), int(lengths[e])))
            totals[e], lengths[e] = 0.0, 0
        obs = step.obs
    returns, spans = zip(*itertools.chain(*played), strict=True)
    return Played(list(returns), list(spans))
