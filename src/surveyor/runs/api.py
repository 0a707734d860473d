"""`train`, `resume`, `load`: from Python, for one run."""

import contextlib
import dataclasses
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from surveyor import agents, envs
from surveyor.agents.base import Agent
from surveyor.envs.atari import FRAMES
from surveyor.errors import SurveyorError
from surveyor.runs import loggers
from surveyor.training import problems
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.loggers import Sinks
from surveyor.runs.recorder import BeliefRecorder
from surveyor.runs.run import Run
from surveyor.training.steps import Rhythm

Report = Callable[[Run], None]


def configure(
    agent: Agent | str,
    env: Any,
    *,
    seed: int = 0,
    episodes: int | None = None,
    steps: int | None = None,
    frames: int | None = None,
    stop_when_solved: bool = True,
    protocol: str | None = None,
) -> Config:
    """A run's configuration; a named agent takes the preset for the environment."""
    name, source = problems.name_of(env), None if isinstance(env, str) else env
    family = problems.family(name) if source is None else problems.family_of(source)
    by_name = isinstance(agent, str)
    chosen = agents.preset(agent, problems.preset_for(env)) if by_name else agent
    if by_name and source is not None:
        chosen = problems.fitted(chosen, source)
    if source is None:
        name = problems.check(name)
    if protocol is not None and family != "ALE":
        raise SurveyorError(f"A protocol is for Atari games, and {name} is none.")
    if frames is not None:
        steps = _steps_of(frames, steps, family)
    if family in problems.STEPS:
        if episodes is not None:
            raise SurveyorError(f"{name} is learnt by steps: give steps, not episodes.")
        Rhythm.of(chosen)
        steps = problems.STEPS[family] if steps is None else steps
        return Config(name, chosen, seed, steps=steps, protocol=protocol, source=source)
    if steps is not None:
        raise SurveyorError(f"{name} is learnt by episodes: give episodes, not steps.")
    problem = source or envs.named(name)
    episodes = problem.default_episodes if episodes is None else episodes
    return Config(name, chosen, seed, episodes, stop_when_solved, source=source)


def _steps_of(frames: int, steps: int | None, family: str) -> int:
    if family != "ALE" or steps is not None:
        raise SurveyorError("Frames are for Atari games, in place of steps.")
    if frames < 1:
        raise SurveyorError(f"frames must be at least 1, not {frames}.")
    return max(1, frames // FRAMES)


def train(
    agent: Agent | str,
    env: Any,
    *,
    seed: int = 0,
    episodes: int | None = None,
    steps: int | None = None,
    frames: int | None = None,
    stop_when_solved: bool = True,
    protocol: str | None = None,
    out: str | Path | None = None,
    beliefs: bool = False,
    tensorboard: bool = False,
    wandb: str | None = None,
    report: Report | None = None,
) -> Run:
    """Train an agent and return the run.

    **Arguments:**

    - `agent`: an agent such as `SU.tree()`, or a name such as `"su"`, which takes the preset that
      is meant for the environment.
    - `env`: a name such as `"Tree-100"`, `"MinAtar/Breakout"`, `"ALE/Pong"` or that of any
      Gymnasium environment; or a Gymnasium environment, a function that makes one, a vector
      environment, or a functional environment in the manner of gymnax.
    - `seed`: decides the environment's action mapping and every random draw of the training.
    - `episodes`: the budget on the paper's problems; the environment's own if None.
    - `steps`: the budget on all others.
    - `frames`: the same on Atari, where a step is four frames.
    - `protocol`: of Atari games, `"paper"` or `"machado"`.
    - `out`: a folder to put the run's folder in; None keeps it in memory (see `Run.save`). A run
      that was begun there is continued.
    - `beliefs`: whether to write down there, now and then, what the agent believes: `surveyor
      report` shows it.
    - `tensorboard`: whether to write the metrics for TensorBoard there as well.
    - `wandb`: a project of Weights & Biases to send the metrics to.
    - `report`: called with the run after every chunk.

    Ctrl-C stops after the current chunk, with everything saved; the run is then not `finished`.
    """
    config = configure(
        agent,
        env,
        seed=seed,
        episodes=episodes,
        steps=steps,
        frames=frames,
        stop_when_solved=stop_when_solved,
        protocol=protocol,
    )
    if tensorboard and out is None:
        raise SurveyorError("TensorBoard's file goes into the run folder: give `out`.")
    sinks = loggers.check(tensorboard=tensorboard, wandb=wandb)
    run = begin(config, None if out is None else Path(out))
    if beliefs and run.folder is not None:
        run.folder.enable_snapshots()
    return finish(run, report, sinks=sinks)


def begin(config: Config, out: Path | None) -> Run:
    """A run of this configuration: continued where one was begun in `out`, else new.

    Equal configurations give equal results, so continuing is the same as starting again.
    """
    if out is None:
        return Run.new(config)
    path = out / config.name
    if not RunFolder(path).made_by_this_version():
        return Run.new(config, path)
    try:
        run = Run.open(path, config.source)
    except SurveyorError:  # damaged, not out of reach: that is another error
        return Run.new(config, path)
    ended = run.folder is not None and run.folder.result() is not None
    return Run.new(config, path) if ended else run


def outcome(config: Config, out: Path, *, any_version: bool = False) -> Record | None:
    """The result of a run of this configuration that has ended in `out`, if there is one; by
    default only of one that was made with the versions that are installed now."""
    folder = RunFolder(out / config.name)
    known = folder.has_config() if any_version else folder.made_by_this_version()
    return folder.result() if known else None


def resume(
    path: str | Path,
    *,
    agent: Agent | None = None,
    env: Any = None,
    tensorboard: bool = False,
    wandb: str | None = None,
    report: Report | None = None,
) -> Run:
    """Go on with the run in this folder, to the same end as if it had never stopped.

    A run keeps its hyperparameters: giving an agent with others is an error. `env` is the
    environment, where it was given as an object and cannot be made from its name; `tensorboard` and
    `wandb` are as in `train`.
    """
    sinks = loggers.check(tensorboard=tensorboard, wandb=wandb)
    run = Run.open(path, env)
    if agent is not None and agent != run.agent:
        now, asked = dataclasses.asdict(run.agent), dataclasses.asdict(agent)
        other = [
            f"{name} is {now[name]}, not {value}"
            for name, value in asked.items()
            if now.get(name) != value
        ]
        raise SurveyorError(
            f"'{path}' was started with other hyperparameters, and a run keeps those: "
            f"{', '.join(other)}; start a new run for others."
        )
    return finish(run, report, sinks=sinks)


def load(path: str | Path, env: Any = None) -> Run:
    """The run in this folder, as its last checkpoint left it; `env` as in `resume`."""
    return Run.open(path, env)


def finish(
    run: Run,
    report: Report | None,
    stop: Callable[[], bool] | None = None,
    sinks: Sinks | None = None,
) -> Run:
    """Train to the end, or until Ctrl-C or `stop`; either way everything is saved."""
    look = None
    with _interrupts() as interrupted, contextlib.ExitStack() as ends:
        log = ends.enter_context(loggers.opened(run, sinks))
        if run.folder is not None and run.folder.snapshots_enabled and not run.finished:
            look = BeliefRecorder(run, run.folder)
            ends.callback(look.close)
        for _ in run.advance(look) if stop is None or not stop() else ():
            log(run)
            if look is not None:
                look()
            if report is not None:
                report(run)
            told = interrupted() or (stop is not None and stop())
            if told and not run.finished:
                break
        if not run.finished:
            run.checkpoint()
    return run


@contextlib.contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Turn SIGINT and SIGTERM into a flag, so that they never strike in the middle of a write."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    with handle_signals(lambda number, _: seen.append(number)):
        yield lambda: bool(seen)


@contextlib.contextmanager
def handle_signals(heard: Callable[[int, Any], None]) -> Iterator[None]:
    """Have this called at SIGINT and SIGTERM, in place of what was."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, heard) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
