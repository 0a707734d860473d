"""A run: what was asked for, where it stands, and what it has learnt."""

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from surveyor import envs
from surveyor.agents.base import Agent
from surveyor.envs.base import Environment, Params
from surveyor.errors import SurveyorError
from surveyor.training import compiled
from surveyor.training.config import Config
from surveyor.training.folder import Record, RunFolder
from surveyor.types import QPosterior

CHUNK_SECONDS = 0.5
"""How long a call of the compiled program is meant to take: how often Python has its turn."""
CHECKPOINT_SECONDS = 2.0
"""How much work a kill can cost, or more where writing a checkpoint takes long:"""
CHECKPOINT_SHARE = 0.05
"""no more than this share of the time goes into checkpoints."""


@dataclasses.dataclass
class Run:
    """A run in memory; with a folder, what it does is on disk as well."""

    config: Config
    loop: compiled.Loop
    metrics: list[Record]
    """One record a test interval: returns and lengths, the test's return, mean losses."""
    seconds: float = 0.0
    """Time spent training, without compilation."""
    folder: RunFolder | None = None

    @classmethod
    def new(cls, config: Config, path: Path | None = None) -> "Run":
        """A run at its beginning; with a path, in a new folder there."""
        folder = None if path is None else RunFolder.create(path, config)
        return cls(config, _start(config), [], folder=folder)

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """The run in this folder as its last checkpoint left it."""
        folder = RunFolder.open(path)
        config = folder.config()
        restored = folder.restore(jax.eval_shape(lambda: _start(config)))
        if restored is None:
            return cls(config, _start(config), [], folder=folder)
        loop, records, seconds = restored
        return cls(config, loop, folder.metrics()[:records], seconds, folder)

    @property
    def agent(self) -> Agent:
        """The agent's hyperparameters; what it has learnt is `run.loop.agent`."""
        return self.config.agent

    @property
    def env(self) -> tuple[Environment, Params]:
        """The environment with the action mapping of this run's seed."""
        return envs.make(self.config.env, self.config.seed)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        solved = int(self.loop.solved_at) >= 0
        spent = int(self.loop.episode) >= self.config.episodes
        return spent or (solved and self.config.stop_when_solved)

    @property
    def solved_at(self) -> int | None:
        """The episode of the first of ten consecutive optimal tests."""
        return _none_if_negative(self.loop.solved_at)

    @property
    def first_success(self) -> int | None:
        """The first training episode with the optimal return."""
        return _none_if_negative(self.loop.first_success)

    @property
    def result(self) -> Record:
        """The run's outcome, as `--json` prints it."""
        return {
            "seed": self.config.seed,
            "solved_at": self.solved_at,
            "first_success": self.first_success,
            "episodes": int(self.loop.episode),
            "gradient_steps": int(self.loop.gradient_steps),
            "seconds": round(self.seconds, 3),
            "path": None if self.folder is None else str(self.folder.path),
        }

    def advance(self) -> Iterator["Run"]:
        """Train to the end, handing over after every chunk; stop iterating to stop.

        Metrics are on disk before the checkpoint that counts on them. Whoever stops early calls
        `checkpoint` so that nothing is lost.
        """
        if not self.finished:
            with contextlib.nullcontext() if self.folder is None else self.folder.held():
                yield from self._chunks()
        if self.folder is not None and self.folder.result() is None:
            self.checkpoint()
            self.folder.finish(self.result)

    def _chunks(self) -> Iterator["Run"]:
        config = self.config
        params, key = self.env[1], compiled.run_keys(config.seed)[1]
        program = _program(config.agent, config.env, config.stop_when_solved)
        intervals, due = 1, time.monotonic() + CHECKPOINT_SECONDS
        if self.folder is not None:
            self.folder.keep_records(len(self.metrics))
        while not self.finished:
            began = time.perf_counter()
            self.loop, records, done = jax.block_until_ready(
                program(self.loop, params, key, np.int32(config.episodes), np.int32(intervals))
            )
            took = time.perf_counter() - began
            self.seconds += took
            new = _to_records(records, int(done))
            self.metrics += new
            if self.folder is not None:
                self.folder.append(new)
                if time.monotonic() > due:
                    due = self.checkpoint()
            grow = min(4.0, CHUNK_SECONDS / max(took, 1e-6))
            intervals = min(compiled.CHUNK, max(1, int(intervals * grow)))
            yield self

    def checkpoint(self) -> float:
        """Write the whole state to the run folder now; returns when the next one is due."""
        began = time.monotonic()
        if self.folder is not None:
            self.folder.save(self.loop, len(self.metrics), self.seconds)
        now = time.monotonic()
        return now + max(CHECKPOINT_SECONDS, (now - began) / CHECKPOINT_SHARE)

    def save(self, path: str | Path) -> Path:
        """Write a copy of this run to a folder of its own; `surveyor.load` reads it back."""
        folder = RunFolder.create(Path(path), self.config)
        folder.append(self.metrics)
        folder.save(self.loop, len(self.metrics), self.seconds)
        if self.finished:
            folder.finish({**self.result, "path": str(folder.path)})
        return folder.path

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, Any]:
        """Actions for one observation or a batch, with the signature of Stable-Baselines3.

        Deterministic actions are greedy on the agent's best guess. Otherwise they follow one
        posterior sample, which is the returned state: pass it back in to keep to it, and a new
        one is drawn where there is none or where an episode starts.
        """
        obs = self._checked(observation)
        rng = np.random.default_rng(0 if deterministic else None)
        if deterministic:
            index = self.agent.greedy(self.loop.agent)
        elif state is None or (episode_start is not None and np.any(episode_start)):
            key = jax.random.key(int(rng.integers(2**31)))
            index = state = self.agent.sample(self.loop.agent, key)
        else:
            index = state
        ties = rng.random((obs.size, self.env[0].spec.num_actions), np.float32)
        actions = _actions(self.agent, self.loop.agent, index, obs, ties)
        return np.asarray(actions, np.int64), state

    def q_posterior(self, observation: Any) -> QPosterior:
        """Mean and joint covariance of Q over these observations and all actions."""
        obs = jnp.atleast_1d(self._checked(observation))
        return self.agent.q_posterior(self.loop.agent, obs)

    def _checked(self, observation: Any) -> jax.Array:
        obs, states = np.asarray(observation), self.env[0].spec.num_states
        if not np.issubdtype(obs.dtype, np.integer) or np.any((obs < 0) | (obs >= states)):
            raise SurveyorError(
                f"Observations of {self.config.env} are whole numbers from 0 to {states - 1}."
            )
        return jnp.asarray(obs, jnp.int32)


def _start(config: Config) -> compiled.Loop:
    env, _ = envs.make(config.env)
    return compiled.start(config.agent, env, compiled.run_keys(config.seed)[0])


@functools.lru_cache(maxsize=8)
def _program(agent: Agent, env_name: str, stop_when_solved: bool) -> Callable[..., Any]:
    """The compiled program, kept for the next seed of the same problem."""
    env, params = envs.make(env_name)
    loop = jax.eval_shape(lambda: compiled.start(agent, env, jax.random.key(0)))
    return compiled.compile_chunk(agent, env, loop, params, stop_when_solved=stop_when_solved)


@eqx.filter_jit
def _actions(agent: Agent, state: Any, index: Any, obs: jax.Array, ties: Any) -> jax.Array:
    act = jax.vmap(lambda obs, u: agent.act(state, index, obs, u))
    return act(obs.reshape(-1), ties).reshape(obs.shape)


def _to_records(intervals: compiled.Interval, count: int) -> list[Record]:
    stacked = jax.tree.map(np.asarray, intervals)
    return [_to_record(jax.tree.map(lambda x, i=i: x[i], stacked)) for i in range(count)]


def _to_record(interval: compiled.Interval) -> Record:
    count = int(np.sum(~np.isnan(interval.returns)))
    return {
        "episode": int(interval.episode),
        "returns": [_number(x) for x in interval.returns[:count]],
        "lengths": [int(x) for x in interval.lengths[:count]],
        "test_return": _number(interval.test_return),
        **{name: _number(value) for name, value in interval.metrics.items()},
    }


def _number(value: Any) -> float | None:
    """A float32 as the shortest decimal that reads back as the same float32; None if not finite."""
    return float(str(np.float32(value))) if math.isfinite(value) else None


def _none_if_negative(value: Any) -> int | None:
    return int(value) if int(value) >= 0 else None
