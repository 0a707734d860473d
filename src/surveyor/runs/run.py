"""A run: its configuration, its state, and what it has learnt."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from surveyor.agents.base import Agent
from surveyor.envs import gymnasium_ids
from surveyor.errors import SurveyorError, require
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.policy import Policy
from surveyor.training import Runner, runner
from surveyor.training.runner import Frozen
from surveyor.types import EnvSpec, QPosterior

CHECKPOINT_SECONDS, CHECKPOINT_SHARE = 2.0, 0.01
"""Least seconds between checkpoints, and largest share of the time that goes into them."""
RECENT = 10
"""Newest records whose mean return is the run's result."""


@dataclasses.dataclass
class Run:
    """A run in memory; with a folder it is on disk as well."""

    config: Config
    loop: PyTree
    metrics: list[Record]
    """One record per test interval, or one every few steps."""
    seconds: float = 0.0
    """Time spent training, without compilation."""
    folder: RunFolder | None = None
    whole: bool = True
    """True if its replay is loaded, so that training can continue."""
    stopped: str | None = None
    """Why `stop` ended training before its end; None if it did not."""
    best: Record | None = None
    """When its state was the best and its mean return, if it was opened with `best`."""
    callbacks: tuple[Any, ...] = ()
    """Callbacks of the training that is going on."""

    @classmethod
    def new(cls, config: Config, path: Path | None = None) -> "Run":
        """Return a new run; with a path, in a new folder there."""
        run = cls(config, None, [])
        _require_arrays(config.agent, run.runner.spec)
        run.loop = run.runner.start()  # before there is a folder: the environment may refuse
        run.folder = None if path is None else RunFolder.create(path, config)
        return run

    @classmethod
    def open(
        cls,
        path: str | Path,
        source: Any = None,
        *,
        agent: Agent | None = None,
        replay: bool = True,
        best: bool = False,
        imports: bool = False,
    ) -> "Run":
        """Return the run in a folder as its last checkpoint left it.

        `source` is its environment, where that cannot be made from its name, and `agent` its agent,
        where that has a module of the user's own. Only training needs the replay, which is 7 GB on
        Atari. With `best`, the agent's state is the best one; with `imports`, the package of the
        environment may be imported.
        """
        folder = RunFolder.open(path, agent)
        config = dataclasses.replace(folder.config(), source=source)
        if source is None and not imports:
            gymnasium_ids.require_imported(config.env)
        run = cls(config, None, [], folder=folder, whole=replay and not best)
        run.stopped = folder.stop_reason()
        restored = folder.restore(*run.runner.frozen_shape(run.whole)[:2])
        if restored is None:
            run.loop = run.runner.start()
        else:
            state, ring, meta = restored
            run.loop = run.runner.thaw(Frozen(state, ring, meta["more"]))
            run.metrics, run.seconds = folder.metrics()[: meta["records"]], meta["seconds"]
        if best:
            if (found := run.read_best()) is None:
                raise SurveyorError(f"'{path}' has no best state: Evaluate keeps one in training.")
            state, run.best = found
            if jax.tree.leaves(state):
                run.loop = eqx.tree_at(lambda loop: loop.agent_state, run.loop, state)
        return run

    def read_best(self) -> tuple[PyTree, Record] | None:
        """Return the agent's best state in the run folder with when it was and its mean return."""
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), self.state)
        return None if self.folder is None else self.folder.read_best(shapes)

    @functools.cached_property
    def runner(self) -> Runner:
        """The runner that trains it."""
        return runner(self.config.task, self.config.make())

    @property
    def agent(self) -> Agent:
        """The agent, which takes observations as the replay has them; see `config` for options."""
        return self.runner.agent

    @property
    def state(self) -> PyTree:
        """The agent's state."""
        return self.loop.agent_state

    @property
    def progress(self) -> int:
        """Episodes or steps so far."""
        return done(self.runner.result(self.loop))

    @property
    def finished(self) -> bool:
        """True if training is at its end."""
        return self.runner.finished(self.loop)

    @property
    def solved_at(self) -> int | None:
        """Episode of the first of ten consecutive optimal tests."""
        return self.runner.result(self.loop).get("solved_at")

    @property
    def first_success(self) -> int | None:
        """First training episode with the optimal return."""
        return self.runner.result(self.loop).get("first_success")

    @property
    def latest(self) -> Record:
        """The newest record; empty before there is one."""
        return self.metrics[-1] if self.metrics else {}

    @property
    def result(self) -> Record:
        """The run's outcome, as `--json` prints it."""
        recent = [r["return"] for r in self.metrics if r.get("return") is not None][-RECENT:]
        return {
            "seed": self.config.seed,
            **self.runner.result(self.loop),
            **({"return": float(np.mean(recent))} if recent else {}),
            "seconds": round(self.seconds, 3),
            "path": None if self.folder is None else str(self.folder.path),
            **({"stopped": self.stopped} if self.stopped and not self.finished else {}),
        }

    def stop(self, reason: str = "a callback stopped it") -> None:
        """End training after the current chunk, with a checkpoint; for callbacks.

        **Arguments:**

        - `reason`: why, for its result and for `surveyor status`.
        """
        self.stopped = reason

    def advance(self, before: Callable[[], None] | None = None) -> Iterator["Run"]:
        """Train to the end, yielding after every chunk; stop iterating to stop.

        `before` is called once no other process can train this run. A caller that stops early
        calls `checkpoint`, so that nothing is lost.
        """
        if not self.finished:
            require(self.whole, "This run was opened without its replay, so it cannot be trained.")
            with contextlib.nullcontext() if self.folder is None else self.folder.held():
                self.stopped = None
                if before is not None:
                    before()
                if self.stopped is not None:
                    return
                try:
                    yield from self._chunks()
                except SurveyorError as error:  # of the environment, for example
                    if self.folder is not None:
                        with contextlib.suppress(OSError):
                            self.folder.fail(str(error))
                    raise
        if self.folder is not None and self.folder.result() is None:
            self.checkpoint()
            self.folder.finish(self.result)

    def _chunks(self) -> Iterator["Run"]:
        due = None  # not before there is a chunk: compiling takes its time
        if self.folder is not None:
            self.folder.truncate_metrics(len(self.metrics))
        for chunk in self.runner.chunks(self.loop):
            self.loop, self.seconds = chunk.loop, self.seconds + chunk.seconds
            self.metrics += chunk.records
            if self.folder is not None:
                self.folder.append(chunk.records)  # before the checkpoint that counts them
                due = due or time.monotonic() + CHECKPOINT_SECONDS
                if time.monotonic() > due:
                    due = self.checkpoint()
            yield self

    def checkpoint(self) -> float:
        """Write the whole state to the run folder; return when the next checkpoint is due."""
        began = time.monotonic()
        if self.folder is not None:
            self._write(self.folder)
            if self.stopped is not None and not self.finished:
                self.folder.stop(self.stopped)
        now = time.monotonic()
        return now + max(CHECKPOINT_SECONDS, (now - began) / CHECKPOINT_SHARE)

    def _write(self, folder: RunFolder) -> None:
        require(self.whole, "This run was opened without its replay, so it cannot be saved.")
        state, ring, more = self.runner.freeze(self.loop)
        counts = {"records": len(self.metrics), "seconds": self.seconds}
        folder.save(state, ring, {"run": self.config.digest(), **counts, "more": more})

    def save(self, path: str | Path) -> Path:
        """Write a copy of this run to the folder `path`, which `surveyor.load` reads back."""
        folder = RunFolder.create(Path(path), self.config)
        folder.append(self.metrics)
        self._write(folder)
        if self.finished:
            folder.finish(self.result)
        return folder.path

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[np.ndarray, Any]:
        """Return actions, and the state for the next call, with Stable-Baselines3's signature.

        **Arguments:**

        - `observation`: one observation or a batch, as the environment gives it.
        - `state`: the posterior sample to follow, from the last call; None draws a new one.
        - `episode_start`: where true, a new sample is drawn.
        - `deterministic`: act greedily on the agent's best guess, without a sample.
        - `action_masks`: True for each action that is allowed, where the environment has a mask in
          its `info`. A mask in an observation is read from there.
        """
        policy, obs = self._policy, self.runner.read(observation)
        mask = self.runner.read_mask(observation, action_masks)
        rng = None if deterministic else np.random.default_rng()
        if rng is not None and (state is None or np.any(episode_start)):
            state = policy.sample(rng)
        index = policy.greedy if deterministic else state
        return np.asarray(self.runner.first_action + policy(obs, mask, index, rng)), state

    @property
    def _policy(self) -> Policy:
        known: Policy | None = vars(self).get("_known_policy")
        if known is None:
            known = self._known_policy = Policy(self.agent, self.runner.spec, self.state)
        elif known.state is not self.state:  # training has gone on
            known.follow(self.state)
        return known

    def q_posterior(self, observation: Any) -> QPosterior:
        """Return mean and joint covariance of Q over observations and all actions.

        **Arguments:**

        - `observation`: one observation or a batch, as the environment gives it.
        """
        return self._policy.q_posterior(self.runner.read(observation))


def done(result: Record) -> int:
    """Return the steps or episodes that a result counts."""
    return result["steps"] if "steps" in result else result["episodes"]


def _require_arrays(agent: Agent, spec: EnvSpec) -> None:
    """Raise `SurveyorError` unless every leaf of a user's agent's state is an array of numbers."""
    if type(agent).__module__.startswith("surveyor."):
        return
    state = eqx.filter_eval_shape(agent.init, spec, jax.random.key(0))
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or jnp.issubdtype(dtype, jax.dtypes.extended):  # such as a key
            place, kind = (
                jax.tree_util.keystr(path),
                type(leaf).__name__ if dtype is None else dtype,
            )
            raise SurveyorError(
                f"The state of {type(agent).__name__} must be a pytree of arrays of numbers, but "
                f"state{place} is {kind}: make it an array, or a static field."
            )
