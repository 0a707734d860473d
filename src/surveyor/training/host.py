"""Learning by steps around environments that step in Python or C++, with compiled turns."""

import itertools
import time
from collections.abc import Iterator
from contextlib import closing
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
from surveyor.training.runner import (
    CHUNK_SECONDS,
    Chunk,
    Frozen,
    Played,
    See,
    StepRunner,
    call_once,
    chosen_index,
)
from surveyor.training.turns import Turn, UnderWay
from surveyor.types import EnvSpec, Transition

PLAY_SEED = 10**9
"""Added to the seeds of evaluations, so that they are far from those of training."""
PLAY_ENVS = 8
"""Largest number of environments that an evaluation plays side by side."""
UNKNOWN = -1
"""An action that has not been chosen yet."""


class HostRunner(StepRunner):
    """Gymnasium and Atari. The environments are made when the first step is taken.

    They are no part of its loop, whose replay is of NumPy arrays, which are written in place.
    """

    env: HostMaker

    @cached_property
    def envs(self) -> HostEnvs:
        """The environments of training."""
        return self._stacked(self.env.make(self.schedule.envs))

    @property
    def spec(self) -> EnvSpec:
        return self.envs.spec

    @property
    def first_action(self) -> int:
        return self.envs.first_action

    def start(self) -> StepLoop:
        obs = self.envs.begin(self.task.seed)
        learning = call_once(partial(steps.start, self.agent, self.spec), self.init_key)
        replay = StepReplay.create(self.spec, self.schedule, host=True)
        return StepLoop(learning, replay, self._none_chosen, obs)

    @property
    def _none_chosen(self) -> np.ndarray:
        """The actions for the next step, before they are chosen."""
        return np.full(self.schedule.envs, UNKNOWN, np.int32)

    def freeze(self, loop: StepLoop) -> Frozen:
        """Return the loop in parts, and the environments."""
        ring, rest = loop.replay.split()
        state = (loop.learning, rest, loop.env, loop.obs)
        return Frozen(state, ring, {"env": self.envs.snapshot()})

    def thaw(self, frozen: Frozen) -> StepLoop:
        learning, rest, action, _ = frozen.state
        obs = self.envs.restore(self.task.seed, frozen.more["env"])
        replay = jax.tree.map(np.array, rest)  # copies, which can be written
        if not self.envs.exact:  # then the episodes that were under way have been cut off
            replay.flags[(int(replay.written) - 1) % len(replay.flags)] |= ENDED
            under_way = attrgetter("episodes.returns", "episodes.lengths")
            learning = eqx.tree_at(under_way, learning, replace_fn=np.zeros_like)
            action = self._none_chosen
        replay = replay if frozen.ring is None else replay.joined(frozen.ring)
        return StepLoop(learning, replay, action, obs)

    def frozen_shape(self, replay: bool = True) -> Frozen:
        """Return the shape of what `freeze` gives; the ring has arrays to read rows into."""
        self.envs.begin(self.task.seed)  # which tells whether there is a mask
        obs = np.zeros((self.envs.count, *self.spec.shape), self.spec.dtype)
        learning = jax.eval_shape(partial(steps.start, self.agent, self.spec), self.init_key)
        create = partial(StepReplay.create, self.spec, self.schedule, host=True)
        rest = jax.eval_shape(lambda: create().split()[1])
        ring = create().split()[0] if replay else None
        return Frozen((learning, rest, self._none_chosen, obs), ring, {})

    def read(self, observation: Any) -> np.ndarray:
        return self.envs.read(observation)

    def read_mask(self, observation: Any, given: Any) -> np.ndarray | None:
        if not self.spec.masked:
            return super().read_mask(observation, given)
        return self.envs.read_mask(observation, given)

    def chunks(self, loop: StepLoop) -> Iterator[Chunk]:
        keep_memory()
        report = jax.jit(partial(steps.report, self.agent), donate_argnums=0)
        now = UnderWay(Turn(self.agent, self.spec, loop.learning), loop, self.train_key)
        recorded = handed_over = time.perf_counter()
        since, pause = now.step, self.pauses(now.step)
        if np.any(now.action == UNKNOWN):
            now.take(None, None, (now.obs, self.envs.legal))
        while now.step < self.task.budget:
            self._round(now)
            clock, step = time.perf_counter(), now.step
            last = step >= self.task.budget
            if last or step // self.round.steps % self.rounds_per_record == 0:
                u = np.random.default_rng(self.task.seed).random(DIAGNOSED)
                obs = now.replay.observations(u) if int(now.replay.count) else now.obs
                learning, metrics = report(now.learning, obs)
                now.leaves = jax.tree.leaves(learning)
                record = self.record(now.loop, metrics, step - since, clock - recorded)
                yield Chunk(now.loop, [record], clock - handed_over)
                recorded = handed_over = time.perf_counter()
                since = step
            elif step >= pause or clock - handed_over > CHUNK_SECONDS:
                yield Chunk(now.loop, [], clock - handed_over)
                handed_over = time.perf_counter()
                recorded += handed_over - clock  # the time in between is not training
            pause = pause if step < pause else self.pauses(step)

    def close(self) -> None:
        if "envs" in vars(self):  # they have been made
            self.envs.close()

    def play(
        self, agent_state: PyTree, episodes: int, seed: int, *, sampled: bool = False
    ) -> Played:
        with closing(self._again(min(episodes, PLAY_ENVS))) as envs:
            return play(self.agent, agent_state, envs, episodes, PLAY_SEED + seed, sampled=sampled)

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

    def _round(self, now: UnderWay) -> None:
        """Act and learn for one round."""
        warmup = self.schedule.warmup
        for act in range(self.round.acts):
            step = self.envs.step(now.action)
            happened: Any = (now.obs, now.action, step.reward, step.final, step.terminated)
            mask: Any = {"next_legal": step.final_legal}
            now.replay = now.replay.add(Transition(*happened, **mask), step.ended, step.skipped)
            seen, now.obs = (now.obs, now.action, step), step.obs
            now.step += len(now.action)
            ready = now.step > warmup and now.replay.count > 0
            if ready and self.round.updates and act == self.round.acts - 1:
                self._learn(now, seen)
            else:
                now.take(seen, None, (now.obs, self.envs.legal))

    def _learn(self, now: UnderWay, seen: Any) -> None:
        """Observe a step, learn, and choose the next actions."""
        ahead = (now.obs, self.envs.legal)

        def uniforms() -> np.ndarray:
            rng = np.random.default_rng([self.task.seed, now.learnt])
            now.learnt += 1
            return rng.random(self.schedule.batch_size)

        updates = self.round.updates
        if not now.replay.strategy.prioritised:
            now.take(seen, now.replay.sample_many([uniforms() for _ in range(updates)]), ahead)
            return
        for left in reversed(range(updates)):  # a draw depends on the errors before it
            batch = now.replay.sample_many([uniforms()])
            errors = now.take(seen, batch, None if left else ahead)
            now.replay, seen = now.replay.update_priorities(batch.number[0], errors), None


def play(
    agent: Agent,
    agent_state: PyTree,
    envs: HostEnvs,
    episodes: int,
    seed: int,
    see: Any = None,
    *,
    sampled: bool = False,
) -> Played:
    """Play greedy episodes, or `sampled`; `see` gets observations and actions of every step.

    Each environment plays its share of them, so that short episodes are not preferred.
    """
    key = jax.random.key(seed)
    draw = jax.jit(jax.vmap(lambda key: chosen_index(agent, agent_state, key, sampled)))
    act = jax.jit(lambda *seen: jax.vmap(partial(agent.act, agent_state))(*seen))
    index = draw(jax.random.split(key, envs.count))
    obs, rng = envs.begin(seed), np.random.default_rng(seed)
    share = [len(range(e, episodes, envs.count)) for e in range(envs.count)]
    totals, lengths = np.zeros(envs.count), np.zeros(envs.count, int)
    played: list[list[tuple[float, int]]] = [[] for _ in share]
    while any(len(done) < due for done, due in zip(played, share, strict=True)):
        u = rng.random((envs.count, envs.spec.num_actions), np.float32)
        mask = () if envs.legal is None else (envs.legal,)
        action = np.asarray(act(index, jnp.asarray(obs), u, *mask))
        if see is not None:
            see(obs, action)
        step = envs.step(action)
        totals, lengths = totals + step.score, lengths + ~step.skipped
        for e in np.flatnonzero(step.ended & ~step.skipped):
            if len(played[e]) < share[e]:
                played[e].append((float(totals[e]), int(lengths[e])))
            totals[e], lengths[e] = 0.0, 0
        if sampled and np.any(step.ended):
            key, fresh_key = jax.random.split(key)
            fresh = draw(jax.random.split(fresh_key, envs.count))
            index = steps.redrawn(jnp.asarray(step.ended), fresh, index)
        obs = step.obs
    returns, spans = zip(*itertools.chain(*played), strict=True)
    return Played(list(returns), list(spans))
