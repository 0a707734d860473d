"""Train one run under a claim, in this process or in a worker of the pool."""

import contextlib
import os
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax

from surveyor import agents, plugins
from surveyor.errors import HeldError, SurveyorError
from surveyor.runs import api, storage
from surveyor.runs.callbacks import Callback, Evaluate, Report
from surveyor.runs.config import Config
from surveyor.runs.evaluation import EvaluationPlan
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.loggers import Sinks
from surveyor.runs.storage import Storage

Progress = Callable[[Record, Record], None]
"""Called after every chunk with the latest metrics record and the result so far."""


class RunOptions(NamedTuple):
    """Options for training a run, apart from its configuration."""

    retrain: bool = False
    """Train finished runs again, from the beginning."""
    sinks: Sinks = Sinks()
    evaluation: EvaluationPlan | None = None
    """Greedy evaluations during training; None for none."""
    beliefs: bool = False
    """Record snapshots of the agent's beliefs."""
    callbacks: Callable[[Config], list[Callback]] | None = None
    """Returns more callbacks for a run; a function that a worker process can import."""
    imports: tuple[str, ...] = ()
    """Modules of the user that a worker process imports first."""

    def for_workers(self) -> "RunOptions":
        """Return the options for other processes, which import what this one was told to."""
        return self._replace(imports=tuple(plugins.imported))


DEFAULT_OPTIONS = RunOptions()


@runtime_checkable
class RunCallback(Protocol):
    """Callbacks for the progress of numbered runs."""

    def update(self, number: int, record: Record, now: Record) -> None:
        """Handle the end of a chunk: the latest metrics record and the result so far."""

    def end(self, number: int, result: Record) -> None:
        """Handle the end of a run, which is `finished`, was stopped, or has a `failure`."""


def train_run(
    config: Config,
    where: Storage,
    progress: Progress,
    stop: api.Stop = lambda: False,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Record:
    """Claim a run, train it from its last checkpoint, and return its result.

    A finished run is returned as it is, unless `options` ask for more. Raise `HeldError` if another
    process is training it. Stop with a checkpoint if `stop` returns True after a chunk.
    """
    with where.claimed(config.name) as claim:
        folder = RunFolder(claim.root / config.name)
        ended = None if options.retrain else folder.outcome(any_version=True)
        if ended is not None and (options.evaluation is None or folder.evaluations()):
            return {**ended, "finished": True, "path": claim.place}
        run = api.begin(config, claim.root) if ended is None else api.load(folder.path)
        if options.beliefs and ended is None:
            folder.enable_snapshots()
        plan, callbacks = options.evaluation, options.sinks.callbacks()
        if plan is not None:
            callbacks.append(Evaluate(times=plan.times, episodes=plan.episodes, keep_best=False))

        if options.callbacks is not None:
            callbacks += options.callbacks(config)

        def report(run):
            claim.publish()
            progress(run.latest, run.result)

        api.finish(run, [*callbacks, Report(report)], stop)
        return {**run.result, "finished": run.finished, "path": claim.place}


def train_alone(
    configs: list[Config], out: str | Path, callback: RunCallback, options: RunOptions
) -> list[Record | None]:
    """Train a single run in this process, as `pool.train_all` trains many."""
    where = storage.at(out)
    where.prepare()
    result = train_run(configs[0], where, partial(callback.update, 0), options=options)
    callback.end(0, result)
    return [result]


def program_key(config: Config) -> tuple[Any, ...]:
    """Return a key that is equal for runs with the same compiled program."""
    return config.agent, config.env, config.stop_when_solved, config.protocol


def run_worker(
    out: str | Path, options: RunOptions, pipe: Connection, stop: Event, cores: set[int]
) -> None:
    """Train each `(number, config)` from the pool, until None; `stop` saves and ends a run.

    Messages to the pool are tuples of a kind, as in `attempt` or update, the number, and details.
    """
    # Workers do not share cores: XLA splits small products over all cores that it sees when it
    # starts, which makes two MinAtar runs side by side as slow as one after the other.
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    agents.import_modules(options.imports)
    where, program = storage.at(out), None
    with contextlib.suppress(EOFError, BrokenPipeError):  # the pool is gone
        while (task := pipe.recv()) is not None:
            number, config = task
            if program not in (None, program_key(config)):
                jax.clear_caches()  # otherwise memory grows with every program
            program = program_key(config)
            report = lambda *news, number=number: pipe.send(("update", number, news))  # noqa: E731
            kind, details = attempt(config, where, report, options, stop.is_set)
            pipe.send((kind, number, details))


def attempt(
    config: Config, where: Storage, progress: Progress, options: RunOptions, stop: api.Stop
) -> tuple[str, Any]:
    """Train a run with `train_run`; return in a word how that ended, and the result or reason."""
    try:
        result = train_run(config, where, progress, stop, options)
        if result["finished"] or stop() or result.get("stopped"):
            return "ended", result
        return "terminated", "Its process was terminated."
    except HeldError as error:
        return "held", str(error)
    except SurveyorError as error:
        return "refused", str(error)
    except OSError as error:
        return "unreachable", describe_error(error)
    except Exception as error:
        return "raised", describe_error(error)


def failed(config: Config, where: Storage, reason: str) -> Record:
    """Return the result of a run that failed; write the reason to its folder, if possible."""
    with contextlib.suppress(OSError, SurveyorError):
        where.fail(config.name, reason)
    return {"seed": config.seed, "finished": False, "failure": reason}


def describe_error(error: Exception) -> str:
    """Return the type, message and location of an exception as one sentence."""
    return f"{plugins.describe(error)}."
