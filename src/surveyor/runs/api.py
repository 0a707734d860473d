"""Training, resuming and loading one run: `train`, `resume`, `load`."""

import contextlib
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from surveyor import agents
from surveyor.agents import options
from surveyor.agents.base import Agent
from surveyor.envs import families, objects
from surveyor.errors import SurveyorError, require, unknown
from surveyor.models.own import Own
from surveyor.replay.strategies import fitting
from surveyor.runs import loggers
from surveyor.runs.callbacks import Callback, Report, Session
from surveyor.runs.config import Config
from surveyor.runs.folder import RunFolder
from surveyor.runs.recorder import Beliefs
from surveyor.runs.run import Run
from surveyor.training.steps import Round

Stop = Callable[[], bool]


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
    frame_stack: int = 0,
    scale: bool = True,
    given: Collection[str] = (),
) -> Config:
    """Return the configuration of a run from `train`'s arguments; raise if they do not fit.

    `given` are the agent's options that the user named, even if with their default values.
    """
    if isinstance(agent, type):
        raise SurveyorError(f"Give an agent, {agent.__name__}(), not its class.")
    family = families.of(env)
    named = isinstance(env, str)
    name, source = (family.canonical(env), None) if named else (objects.name_of(env), env)
    if isinstance(agent, str):
        agent = objects.fit(agents.preset(agent, family.preset(name)), env)
    usual = agents.entry_of(agent).values(family.preset(name))
    setting = family.setting(name)
    if isinstance(getattr(agent, "torso", None), Own):  # it is a network on any observation
        setting = setting._replace(tables=False)
    options.refuse_unread(agent, setting, name, usual, given)
    if protocol is not None and protocol not in family.protocols:
        raise unknown("protocol", protocol, family.protocols)
    if frames is not None:
        require(family.unit == "frames", f"{name} is counted in {family.unit}, not in frames.")
        require(steps is None, f"Give frames or steps of {name}, not both.")
        require(frames >= 1, f"frames must be at least 1, not {frames}.")
        steps = max(1, frames // family.frames_per_step)
    if family.by_episodes:
        require(steps is None, f"{name} is learnt by episodes: give episodes, not steps.")
        require(not frame_stack and scale, f"{name} has numbered states: there is nothing to see.")
        fitting(agent.schedule.replay, "episodes")
        episodes = family.default_budget(name) if episodes is None else episodes
        return Config(name, agent, seed, episodes, stop_when_solved, source=source)
    require(episodes is None, f"{name} is learnt by steps: give steps, not episodes.")
    require(stop_when_solved, f"{name} is learnt by steps: it is never solved.")
    Round.of(agent)  # raises if the agent cannot learn by steps
    fitting(agent.schedule.replay, "steps")
    steps = family.default_budget(name) if steps is None else steps
    seen = {"frame_stack": frame_stack, "scale": scale}
    return Config(name, agent, seed, steps=steps, protocol=protocol, source=source, **seen)


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
    frame_stack: int = 0,
    scale: bool = True,
    out: str | Path | None = None,
    beliefs: bool = False,
    tensorboard: bool = False,
    wandb: str | None = None,
    report: Callable[[Run], None] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train an agent and return the run; Ctrl-C saves everything and leaves it unfinished.

    **Arguments:**

    - `agent`: an agent, or a name such as `"su"` for its preset on the environment.
    - `env`: a name such as `"Tree-100"`, `"MinAtar/Breakout"`, `"ALE/Pong"` or any Gymnasium id; or
      a Gymnasium, vector or dm_env environment, a function that makes one, or a functional
      environment with the interface of gymnax.
    - `seed`: decides the environment's action mapping and every random draw of the training.
    - `episodes`, `steps`, `frames`: the budget, in episodes on trees and chains, else in steps, on
      Atari also in frames, of which a step has four; the family's default if None.
    - `stop_when_solved`: True to end training when a problem learnt by episodes is solved.
    - `protocol`: how the environment is played, as `"machado"` on Atari, `"full-view"` on MiniGrid.
    - `frame_stack`: number of frames that an observation stacks, stored once; 0 for none.
    - `scale`: True to scale observations where they need it (docs/environments.md).
    - `out`: the folder for the run's folder, where a run that was started is continued; None keeps
      the run in memory (see `Run.save`).
    - `beliefs`: True to record belief snapshots in the folder, for `surveyor report`.
    - `tensorboard`: True to write the metrics for TensorBoard to the folder too.
    - `wandb`: project of Weights & Biases to send the metrics to.
    - `report`: function that gets the run after every chunk of training.
    - `callbacks`: objects of `surveyor.Callback`, such as `surveyor.Evaluate(every=1000)`.
    """
    asked = {"episodes": episodes, "steps": steps, "frames": frames}
    seen = {"protocol": protocol, "frame_stack": frame_stack, "scale": scale}
    config = configure(agent, env, seed=seed, stop_when_solved=stop_when_solved, **asked, **seen)
    if out is None and (tensorboard or beliefs):
        raise SurveyorError("TensorBoard's files and beliefs go into the run folder: give `out`.")
    every = _gather(loggers.check(tensorboard=tensorboard, wandb=wandb), callbacks, report)
    run = begin(config, None if out is None else Path(out))
    return finish(run, [Beliefs(), *every] if beliefs else every)


def begin(config: Config, out: Path | None) -> Run:
    """Return a run of this configuration, continued if one was started in `out`, else new."""
    if out is None:
        return Run.new(config)
    folder = RunFolder(out / config.name)
    if folder.made_by_this_version() and folder.result() is None:  # equal versions, equal bits
        with contextlib.suppress(SurveyorError):  # damaged; storage out of reach raises others
            return Run.open(folder.path, config.source, agent=config.agent, imports=True)
    return Run.new(config, folder.path)


def resume(
    path: str | Path,
    *,
    env: Any = None,
    agent: Agent | None = None,
    tensorboard: bool = False,
    wandb: str | None = None,
    report: Callable[[Run], None] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Continue a run to the same result as if it had never stopped; return it.

    **Arguments:**

    - `path`: the run's folder.
    - `env`: the environment, if it was passed as an object and has no name to make it from.
    - `agent`: the agent, if it has a torso of the user's own.
    - `tensorboard`, `wandb`, `report`, `callbacks`: as in `train`.
    """
    every = _gather(loggers.check(tensorboard=tensorboard, wandb=wandb), callbacks, report)
    return finish(Run.open(path, env, agent=agent), every)


def load(
    path: str | Path, env: Any = None, agent: Agent | None = None, *, best: bool = False
) -> Run:
    """Return a run as its last checkpoint left it.

    **Arguments:**

    - `path`: the run's folder.
    - `env`: the environment, if it was passed as an object and has no name to make it from.
    - `agent`: the agent, if it has a torso of the user's own.
    - `best`: True for the agent's state with the best evaluation, which the callback `Evaluate`
      keeps; such a run can be used but not trained.
    """
    return Run.open(path, env, agent=agent, best=best)


def _gather(
    sinks: loggers.Sinks, callbacks: Sequence[Callback], report: Callable[[Run], None] | None
) -> list[Callback]:
    """Return all callbacks in the order in which they are called."""
    require(isinstance(callbacks, Iterable), "callbacks is a list of callbacks.")
    for one in callbacks:
        said = f"{one!r} is no callback: callbacks are objects of surveyor.Callback."
        require(isinstance(one, Callback), said)
    return [*sinks.callbacks(), *callbacks, *([] if report is None else [Report(report)])]


def finish(run: Run, callbacks: Iterable[Callback] = (), stop: Stop = lambda: False) -> Run:
    """Train until the end, Ctrl-C, or a callback or `stop` ends it; save everything."""
    signals, given = [], [*callbacks]  # handled between chunks, so that they interrupt no write
    if run.folder is not None and run.folder.snapshots_enabled:
        known = any(isinstance(one, Beliefs) for one in given)
        given = given if known else [Beliefs(), *given]
    with handle_signals(lambda number, _: signals.append(number)), Session(run, given) as session:
        if run.finished:
            session.start()
        for _ in () if stop() else run.advance(session.start):
            session.chunk()
            if (signals or run.stopped is not None or stop()) and not run.finished:
                break
        if not run.finished:
            run.checkpoint()
    return run


@contextlib.contextmanager
def handle_signals(handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Call `handler` at SIGINT and SIGTERM, in place of the handlers installed before."""
    main = threading.current_thread() is threading.main_thread()  # others cannot set handlers
    numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
