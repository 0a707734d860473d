"""Training, resuming and loading one run: `train`, `resume`, `load`."""

import contextlib
import signal
import threading
from collections.abc import Callable, Collection, Iterator
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
from surveyor.runs.config import Config
from surveyor.runs.folder import RunFolder
from surveyor.runs.loggers import Sinks
from surveyor.runs.recorder import BeliefRecorder
from surveyor.runs.run import Run
from surveyor.training.steps import Round

Report = Callable[[Run], None]
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
        raise unknown(f"protocol of {name}", protocol, family.protocols)
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
    report: Report | None = None,
) -> Run:
    """Train an agent and return the run; Ctrl-C saves everything and leaves it unfinished.

    **Arguments:**

    - `agent`: an agent, or a name such as `"su"` for its preset on the environment.
    - `env`: a name such as `"Tree-100"`, `"MinAtar/Breakout"`, `"ALE/Pong"` or any Gymnasium id; or
      a Gymnasium environment, a vector environment, a function that makes an environment, or a
      functional environment with the interface of gymnax.
    - `seed`: decides the environment's action mapping and every random draw of the training.
    - `episodes`: the budget where agents learn by episodes; the family's default if None.
    - `steps`: the budget in all other environments; the family's default if None.
    - `frames`: the budget in frames in place of steps, for Atari, where a step is four frames.
    - `stop_when_solved`: True to end training when a problem learnt by episodes is solved.
    - `protocol`: the protocol of an Atari game, `"paper"` or `"machado"`.
    - `frame_stack`: number of frames that an observation stacks, stored once; 0 for none.
    - `scale`: True to scale observations where they need it (docs/environments.md).
    - `out`: the folder for the run's folder, where a run that was started is continued; None keeps
      the run in memory (see `Run.save`).
    - `beliefs`: True to record belief snapshots in the folder, for `surveyor report`.
    - `tensorboard`: True to write the metrics for TensorBoard to the folder too.
    - `wandb`: project of Weights & Biases to send the metrics to.
    - `report`: callback that gets the run after every chunk of training.
    """
    asked = {"episodes": episodes, "steps": steps, "frames": frames}
    more = {"stop_when_solved": stop_when_solved, "protocol": protocol}
    more |= {"frame_stack": frame_stack, "scale": scale}
    config = configure(agent, env, seed=seed, **asked, **more)
    if out is None and (tensorboard or beliefs):
        raise SurveyorError("TensorBoard's files and beliefs go into the run folder: give `out`.")
    sinks = loggers.check(tensorboard=tensorboard, wandb=wandb)
    run = begin(config, None if out is None else Path(out))
    if beliefs and run.folder is not None:
        run.folder.enable_snapshots()
    return finish(run, report, sinks)


def begin(config: Config, out: Path | None) -> Run:
    """Return a run of this configuration, continued if one was started in `out`, else new."""
    if out is None:
        return Run.new(config)
    folder = RunFolder(out / config.name)
    if folder.made_by_this_version() and folder.result() is None:  # equal versions, equal bits
        with contextlib.suppress(SurveyorError):  # damaged; storage out of reach raises others
            return Run.open(folder.path, config.source, agent=config.agent)
    return Run.new(config, folder.path)


def resume(
    path: str | Path,
    *,
    env: Any = None,
    agent: Agent | None = None,
    tensorboard: bool = False,
    wandb: str | None = None,
    report: Report | None = None,
) -> Run:
    """Continue a run to the same result as if it had never stopped; return it.

    **Arguments:**

    - `path`: the run's folder.
    - `env`: the environment, if it was passed as an object and has no name to make it from.
    - `agent`: the agent, if it has a torso of the user's own.
    - `tensorboard`, `wandb`, `report`: as in `train`.
    """
    sinks = loggers.check(tensorboard=tensorboard, wandb=wandb)
    return finish(Run.open(path, env, agent=agent), report, sinks)


def load(path: str | Path, env: Any = None, agent: Agent | None = None) -> Run:
    """Return a run as its last checkpoint left it.

    **Arguments:**

    - `path`: the run's folder.
    - `env`: the environment, if it was passed as an object and has no name to make it from.
    - `agent`: the agent, if it has a torso of the user's own.
    """
    return Run.open(path, env, agent=agent)


def finish(run: Run, report: Report | None, sinks: Sinks, stop: Stop = lambda: False) -> Run:
    """Train until the end, Ctrl-C, or `stop` after a chunk returns True; save everything."""
    recorder, signals = None, []  # handled between chunks, so that they never interrupt a write
    with handle_signals(lambda number, _: signals.append(number)), contextlib.ExitStack() as ends:
        log = ends.enter_context(loggers.opened(run, sinks))
        if run.folder is not None and run.folder.snapshots_enabled and not run.finished:
            recorder = BeliefRecorder(run, run.folder)
            ends.callback(recorder.close)
        for _ in () if stop() else run.advance(recorder):
            log()
            if recorder is not None:
                recorder()
            if report is not None:
                report(run)
            if (signals or stop()) and not run.finished:
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
