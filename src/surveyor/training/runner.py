"""What a run does between its beginning and its end, behind one interface for every kind of
environment."""

import abc
import functools
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from surveyor.agents.base import Agent
from surveyor.envs.atari import FRAMES
from surveyor.envs.base import Environment
from surveyor.envs.functional import Functional
from surveyor.envs.reading import check_observations, check_rewards
from surveyor.errors import SurveyorError
from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.training import episodes as compiled
from surveyor.training import functional
from surveyor.training.steps import Rhythm
from surveyor.types import EnvSpec, State

CHUNK_SECONDS = 0.5
"""How long a call of a compiled program is meant to take: how often Python has its turn."""
RECORDS = 200
"""How many records a run by steps has about."""


class Chunk(NamedTuple):
    """Some training."""

    loop: PyTree
    records: list[Record]
    seconds: float


class Runner(abc.ABC):
    """Trains the agent of a configuration; all that changes is in the loop that it hands over."""

    unit: str
    """What the budget counts: episode or step."""

    def __init__(self, config: Config):
        self.config = config
        self.pauses: Callable[[int], int] | None = None
        """After so many episodes or steps, when a chunk has to end next."""

    @property
    @abc.abstractmethod
    def every(self) -> int:
        """Episodes or steps between two records."""

    @property
    @abc.abstractmethod
    def spec(self) -> EnvSpec:
        """What the environment looks like to an agent."""

    @property
    def first_action(self) -> int:
        """What the environment calls the first of its actions."""
        return 0

    @abc.abstractmethod
    def start(self) -> PyTree:
        """The loop at its beginning."""

    @abc.abstractmethod
    def chunks(self, loop: PyTree) -> Iterator[Chunk]:
        """Train to the end, handing over now and then."""

    @abc.abstractmethod
    def result(self, loop: PyTree) -> Record:
        """How far it has come, and how well."""

    @abc.abstractmethod
    def finished(self, loop: PyTree) -> bool:
        """Whether there is nothing left to do."""

    @abc.abstractmethod
    def agent(self, loop: PyTree) -> State:
        """What the agent has learnt."""

    def frozen_shape(self, replay: bool = True) -> PyTree:
        """The structure, shapes and types of what `freeze` gives, to read a checkpoint into;
        without the replay, if that is possible, to look only at what was learnt."""
        return jax.eval_shape(self.start)

    def read(self, observation: np.ndarray) -> np.ndarray:
        """Observations of the environment as its agent takes them; an error for any others."""
        spec, name = self.spec, self.config.env
        if spec.tabular:
            whole = np.issubdtype(observation.dtype, np.integer)
            if not whole or np.any((observation < 0) | (observation >= spec.num_states)):
                raise SurveyorError(
                    f"Observations of {name} are whole numbers from 0 to {spec.num_states - 1}."
                )
        elif observation.shape[max(0, observation.ndim - len(spec.shape)) :] != spec.shape:
            raise SurveyorError(
                f"Observations of {name} have shape {spec.shape}, not {observation.shape}."
            )
        return observation.astype(spec.dtype)

    def freeze(self, loop: PyTree) -> tuple[PyTree, dict[str, Any]]:
        """A loop as arrays and a little JSON, for a checkpoint."""
        return loop, {}

    def thaw(self, arrays: PyTree, more: dict[str, Any]) -> PyTree:
        """The loop again."""
        return arrays

    def close(self) -> None:  # noqa: B027
        """Let go of what the environment holds."""


class EpisodeRunner(Runner):
    """The paper's problems, learnt by episodes: the whole loop is one compiled program."""

    unit = "episode"

    def __init__(self, config: Config, env: Environment):
        super().__init__(config)
        self.env = env

    @property
    def every(self) -> int:
        return compiled.TEST_EVERY

    @property
    def spec(self) -> EnvSpec:
        return self.env.spec

    def start(self) -> compiled.Loop:
        key = compiled.run_keys(self.config.seed)[0]
        return compiled.start(self.config.agent, self.env, key)

    def finished(self, loop: compiled.Loop) -> bool:
        solved = int(loop.solved_at) >= 0
        spent = int(loop.episode) >= self.config.budget
        return spent or (solved and self.config.stop_when_solved)

    def chunks(self, loop: compiled.Loop) -> Iterator[Chunk]:
        config = self.config
        params, key = self.env.params(config.seed), compiled.run_keys(config.seed)[1]
        program = _episode_program(config.agent, self.env, config.stop_when_solved)
        wanted = 1
        while not self.finished(loop):
            intervals = wanted
            if self.pauses is not None:
                left = self.pauses(int(loop.episode)) - int(loop.episode)
                intervals = min(wanted, math.ceil(left / self.every))
            began = time.perf_counter()
            loop, records, done = jax.block_until_ready(
                program(loop, params, key, np.int32(config.budget), np.int32(intervals))
            )
            took = time.perf_counter() - began
            yield Chunk(loop, _to_records(records, int(done)), took)
            if intervals == wanted:
                grow = min(4.0, CHUNK_SECONDS / max(took, 1e-6))
                wanted = min(compiled.CHUNK, max(1, int(intervals * grow)))

    def result(self, loop: compiled.Loop) -> Record:
        return {
            "solved_at": _none_if_negative(loop.solved_at),
            "first_success": _none_if_negative(loop.first_success),
            "episodes": int(loop.episode),
            "gradient_steps": int(loop.gradient_steps),
        }

    def agent(self, loop: compiled.Loop) -> State:
        return loop.agent


class StepRunner(Runner):
    """What runs by steps have in common: when they end, and what they say of themselves."""

    unit = "step"

    @property
    def every(self) -> int:
        return self.rounds_per_record * Rhythm.of(self.config.agent).steps

    @property
    def rounds_per_record(self) -> int:
        """Rounds of acting and learning between two records."""
        return max(1, self.config.budget // (RECORDS * Rhythm.of(self.config.agent).steps))

    def finished(self, loop: PyTree) -> bool:
        return int(loop.learning.step) >= self.config.budget

    def rounds_left(self, loop: PyTree) -> int:
        """Rounds to the next record, or to the end."""
        left = self.config.budget - int(loop.learning.step)
        return min(self.rounds_per_record, math.ceil(left / Rhythm.of(self.config.agent).steps))

    def result(self, loop: PyTree) -> Record:
        step = int(loop.learning.step)
        return {
            "steps": step,
            **self._frames(step),
            "episodes": int(loop.learning.episodes.ended),
            "gradient_steps": int(loop.learning.gradient_steps),
        }

    def agent(self, loop: PyTree) -> State:
        return loop.learning.agent

    def record(self, loop: PyTree, metrics: Any, steps: int, seconds: float) -> Record:
        """One line of the metrics."""
        numbers = {name: to_number(value) for name, value in metrics.items()}
        step = int(loop.learning.step)
        return {
            "step": step,
            **self._frames(step),
            "episodes": int(loop.learning.episodes.ended),
            **numbers,
            "steps_per_second": round(steps / max(seconds, 1e-9), 1),
        }

    def _frames(self, step: int) -> Record:
        return {"frames": FRAMES * step} if self.config.by_frames else {}


class FunctionalRunner(StepRunner):
    """Functional environments learnt by steps: the whole loop is one compiled program."""

    def __init__(self, config: Config, env: Functional):
        super().__init__(config)
        self.env = env

    @property
    def spec(self) -> EnvSpec:
        return self.env.spec

    def start(self) -> functional.StepLoop:
        key = compiled.run_keys(self.config.seed)[0]
        # Compiled, so that every array is a buffer of its own: all are donated.
        return jax.jit(partial(functional.start, self.config.agent, self.env))(key)

    def chunks(self, loop: functional.StepLoop) -> Iterator[Chunk]:
        key = compiled.run_keys(self.config.seed)[1]
        program = _step_program(self.config.agent, self.env)
        while not self.finished(loop):
            began, before = time.perf_counter(), int(loop.learning.step)
            rounds = np.int32(self.rounds_left(loop))
            loop, metrics = jax.block_until_ready(program(loop, key, rounds))
            took = time.perf_counter() - began
            check_rewards(self.env.name, np.asarray(loop.ring.reward))
            check_observations(self.env.name, np.asarray(loop.obs))
            steps = int(loop.learning.step) - before
            yield Chunk(loop, [self.record(loop, metrics, steps, took)], took)


@functools.lru_cache(maxsize=8)
def _episode_program(agent: Agent, env: Environment, stop_when_solved: bool) -> Callable[..., Any]:
    """The compiled program, kept for the next seed of the same problem."""
    loop = jax.eval_shape(lambda: compiled.start(agent, env, jax.random.key(0)))
    params = env.default_params
    return compiled.compile_chunk(agent, env, loop, params, stop_when_solved=stop_when_solved)


_step_programs: list[tuple[Agent, Functional, Callable[..., Any]]] = []


def _step_program(agent: Agent, env: Functional) -> Callable[..., Any]:
    """The compiled program, kept for the next seed of the same environment."""
    for known, other, program in _step_programs:
        same = other.inner is env.inner and eqx.tree_equal(other.params, env.params)
        if known == agent and other.spec == env.spec and bool(same):
            return program
    loop = jax.eval_shape(lambda: functional.start(agent, env, jax.random.key(0)))
    _step_programs[:] = [(agent, env, functional.compile_train(agent, env, loop))]
    return _step_programs[0][2]


def _to_records(intervals: compiled.Interval, count: int) -> list[Record]:
    stacked = jax.tree.map(np.asarray, intervals)
    return [_to_record(jax.tree.map(lambda x, i=i: x[i], stacked)) for i in range(count)]


def _to_record(interval: compiled.Interval) -> Record:
    count = int(np.sum(~np.isnan(interval.returns)))
    return {
        "episode": int(interval.episode),
        "returns": [to_number(x) for x in interval.returns[:count]],
        "lengths": [int(x) for x in interval.lengths[:count]],
        "test_return": to_number(interval.test_return),
        **{name: to_number(value) for name, value in interval.metrics.items()},
    }


def to_number(value: Any) -> float | None:
    """A float32 as the shortest decimal that reads back as the same float32; None if not finite."""
    return float(str(np.float32(value))) if math.isfinite(value) else None


def _none_if_negative(value: Any) -> int | None:
    return int(value) if int(value) >= 0 else None
