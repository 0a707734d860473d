"""The interface of runners: they train, play, film and snapshot one run, whatever its loop."""

import abc
import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor.agents.base import Agent
from surveyor.envs.reading import read_states
from surveyor.errors import SurveyorError, require
from surveyor.training import beliefs
from surveyor.training.scaling import ScaledState, prepared
from surveyor.training.steps import Round
from surveyor.types import PRNG, EnvSpec

RECORDS = 200
"""Approximate number of records of a run by steps."""
CHUNK_SECONDS = 0.5
"""Target duration of a chunk, after which Python can stop the run."""

Record = dict[str, Any]
"""One line of a run's metrics, or its result."""
See = Callable[[np.ndarray, Callable[[], np.ndarray], int], None]
"""Called at every step of a film with the observation, a function that draws it, and the action."""


class EnoughError(Exception):
    """Raised by a film's viewer to end it."""


class Task(NamedTuple):
    """One agent to train on one environment."""

    env: str
    """Name of the environment."""
    agent: Agent
    seed: int
    budget: int
    """Episodes or steps to train for."""
    stop_when_solved: bool = True
    """True if a run by episodes ends when its problem is solved."""
    frames_per_step: int = 1
    """Frames that one step takes, where results are counted in frames (Atari)."""
    scale: bool = True
    """True if observations are scaled where they need it."""
    frame_stack: int = 0
    """Frames that an observation stacks; 0 for as many as the environment has."""


class Chunk(NamedTuple):
    """A part of a run's training."""

    loop: PyTree
    records: list[Record]
    seconds: float


class Frozen(NamedTuple):
    """A loop as a checkpoint holds it."""

    state: PyTree
    """Arrays that every checkpoint writes."""
    ring: PyTree
    """Rows of the replay, a `Ring`; a checkpoint writes those that are new. None without them."""
    more: Record
    """A little JSON."""


class Played(NamedTuple):
    """Greedy episodes."""

    returns: list[float]
    lengths: list[int]
    optimal_return: float | None = None
    """The best return there is, where it is known."""
    optimal: float | None = None
    """Share of episodes with that return."""


class Runner(abc.ABC):
    """Trains the agent of a task; everything that changes is in the loop that it hands over.

    Every loop has an `agent_state` and a `replay`.
    """

    threaded_snapshots: ClassVar[bool] = False
    """True if snapshots are computed in a thread, from copies."""
    every: int
    """Episodes or steps between two records."""

    def __init__(self, task: Task, env: Any):
        self.task, self.env = task, env
        self.init_key, self.train_key = jax.random.split(jax.random.key(task.seed))
        self.pauses: Callable[[int], float] = lambda at: math.inf
        """Returns, after this many episodes or steps, when a chunk has to end next."""
        self.observed: np.ndarray | None = None
        """Observations that snapshots are about, once they are chosen."""

    @property
    def spec(self) -> EnvSpec:
        """Spaces of the environment."""
        return self.env.spec

    @cached_property
    def agent(self) -> Agent:
        """The agent of the task, with scaled observations where they need it."""
        return prepared(self.task.agent, self.spec, scale=self.task.scale)

    @property
    def first_action(self) -> int:
        """The environment's name of its first action."""
        return 0

    @abc.abstractmethod
    def start(self) -> PyTree:
        """Return the loop before any training."""

    @abc.abstractmethod
    def chunks(self, loop: PyTree) -> Iterator[Chunk]:
        """Train to the end, in chunks."""

    @abc.abstractmethod
    def result(self, loop: PyTree) -> Record:
        """Return how far training is, and its outcome so far."""

    @abc.abstractmethod
    def finished(self, loop: PyTree) -> bool:
        """Return whether training is at its end."""

    @abc.abstractmethod
    def play(
        self, agent_state: PyTree, episodes: int, seed: int, *, sampled: bool = False
    ) -> Played:
        """Play greedy episodes, or `sampled` each with a sample of the belief, as in training.

        The seed draws samples, breaks ties and starts episodes.
        """

    def film(self, agent_state: PyTree, seed: int, see: See) -> None:
        """Play one greedy episode and call `see` before every step."""
        raise SurveyorError(f"{self.task.env} has no pictures to film.")

    @abc.abstractmethod
    def snapshot_inputs(self, loop: PyTree) -> PyTree | None:
        """Return the part of the loop that a snapshot needs; None while there is nothing to see."""

    def observed_images(self, agent_state: PyTree) -> np.ndarray | None:
        """Return images of the observations that snapshots are about; None without images."""
        return None

    @abc.abstractmethod
    def snapshot(self, inputs: PyTree, at: int) -> dict[str, Any] | None:
        """Return what the agent believes as arrays; None where nothing can be shown."""

    def frozen_shape(self, replay: bool = True) -> Frozen:
        """Return structure, shapes and types of what `freeze` gives, to read a checkpoint into.

        Without the rows of its replay, a run can only be used, not trained.
        """
        state, ring = jax.eval_shape(lambda: self.freeze(self.start())[:2])
        return Frozen(state, ring if replay else None, {})

    def read(self, observation: Any) -> np.ndarray:
        """Return observations of the environment as its agent takes them; raise for others."""
        spec, name, observation = self.spec, self.task.env, np.asarray(observation)
        if spec.tabular:
            return read_states(name, observation, spec.num_states)
        if observation.shape[max(0, observation.ndim - len(spec.shape)) :] != spec.shape:
            said = f"have shape {spec.shape}, not {observation.shape}"
            raise SurveyorError(f"Observations of {name} {said}.")
        return observation.astype(spec.dtype)

    def read_mask(self, observation: Any, given: Any) -> np.ndarray | None:
        """Return the actions allowed at observations: in them, or `given`; None without a mask."""
        require(given is None, f"{self.task.env} has no mask of its actions.")
        return None

    def freeze(self, loop: PyTree) -> Frozen:
        """Return a loop in parts, for a checkpoint."""
        ring, rest = loop.replay.split()
        return Frozen(eqx.tree_at(lambda loop: loop.replay, loop, rest), ring, {})

    def thaw(self, frozen: Frozen) -> PyTree:
        """Return the loop of a checkpoint."""
        loop, ring = frozen.state, frozen.ring
        replay = loop.replay if ring is None else loop.replay.joined(ring)
        return eqx.tree_at(lambda loop: loop.replay, loop, replay)

    def close(self) -> None:  # noqa: B027
        """Release what the environment holds."""


class StepRunner(Runner):
    """Runs by steps: when they end, what they record, and their snapshots."""

    def __init__(self, task: Task, env: Any):
        super().__init__(task, env)
        self.round, self.schedule = Round.of(task.agent), task.agent.schedule
        self.rounds_per_record = max(1, task.budget // (RECORDS * self.round.steps))
        self.every = self.rounds_per_record * self.round.steps

    def finished(self, loop: PyTree) -> bool:
        return int(loop.learning.step) >= self.task.budget

    def result(self, loop: PyTree) -> Record:
        gradient_steps = int(loop.learning.gradient_steps)
        return {**self._counts(loop, "steps"), "gradient_steps": gradient_steps}

    def record(self, loop: PyTree, metrics: Any, steps: int, seconds: float) -> Record:
        """Return one line of the metrics."""
        numbers = {name: to_number(value) for name, value in metrics.items()}
        speed = round(steps / max(seconds, 1e-9), 1)
        return {**self._counts(loop, "step"), **numbers, "steps_per_second": speed}

    def snapshot_inputs(self, loop: PyTree) -> PyTree | None:
        """Return the agent's state, once there are observations to ask it about."""
        ready = int(loop.learning.step) >= self.schedule.warmup
        if self.observed is None and ready:
            self.observed = beliefs.choose_observations(loop.replay)
        return None if self.observed is None else loop.agent_state

    def snapshot(self, inputs: PyTree, at: int) -> dict[str, Any] | None:
        """Return the belief about a few observations, and the ranges that these are scaled by."""
        key = jax.random.key(0)
        found = beliefs.about(self.agent, inputs, np.asarray(self.observed), key)
        if not isinstance(inputs, ScaledState):
            return found
        return {**found, "low": inputs.ranges.low, "high": inputs.ranges.high}

    def observed_images(self, agent_state: PyTree) -> np.ndarray | None:
        """Return the newest image in each observation that snapshots are about; None without."""
        spec, obs = self.spec, self.observed
        if obs is None or not spec.picture:
            return None
        if isinstance(agent_state, ScaledState):  # symbols would be almost black
            obs = (255 * np.clip(agent_state.ranges.scale(jnp.asarray(obs)), 0, 1)).astype(np.uint8)
        frames = obs.reshape(len(obs), -1, math.prod(spec.frame))[:, -1]
        return frames[:, : math.prod(spec.picture)].reshape(-1, *spec.picture)

    def _counts(self, loop: PyTree, unit: str) -> Record:
        """Return the steps so far, called `unit`, with frames if they are counted, and episodes."""
        step, frames = int(loop.learning.step), self.task.frames_per_step
        counts = {unit: step, "frames": frames * step} if frames > 1 else {unit: step}
        return {**counts, "episodes": int(loop.learning.episodes.ended)}


def chosen_index(agent: Agent, agent_state: PyTree, key: PRNG, sampled: bool) -> PyTree:
    """Return a sample of the belief, or the best guess, for an episode that is only played."""
    return agent.sample(agent_state, key) if sampled else agent.greedy(agent_state)


def call_once(function: Callable[[Any], PyTree], argument: Any) -> PyTree:
    """Call a function as one program that is compiled fast, since it runs only once.

    Every array of the result is a buffer of its own, so that it can be donated.
    """
    lowered = jax.jit(function).lower(argument)
    return lowered.compile(compiler_options={"xla_backend_optimization_level": "1"})(argument)


def to_number(value: Any) -> float | None:
    """Return a float32 as the shortest decimal that reads back as it; None if not finite."""
    return float(str(np.float32(value))) if math.isfinite(value) else None
