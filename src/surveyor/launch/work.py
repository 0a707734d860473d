"""Train one run under a claim, in this process or in a worker of the pool."""

import contextlib
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import jax

from surveyor.errors import HeldError, SurveyorError
from surveyor.runs import api, storage
from surveyor.runs.config import Config
from surveyor.runs.evaluation import EvaluationPlan, PeriodicEvaluation
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.loggers import NO_SINKS, Sinks
from surveyor.runs.storage import Storage


class RunOptions(NamedTuple):
    """Options for training a run, apart from its configuration."""

    retrain: bool = False
    """Train finished runs again, from the beginning."""
    sinks: Sinks = NO_SINKS
    """Destinations of the metrics in addition to metrics.jsonl."""
    evaluation: EvaluationPlan | None = None
    """Greedy evaluations during training; None for none."""
    beliefs: bool = False
    """Record snapshots of the agent's beliefs."""


DEFAULT_OPTIONS = RunOptions()


def train_run(
    config: Config,
    where: Storage,
    progress: Callable[[Record, Record], None],
    stop: Callable[[], bool] = lambda: False,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Record:
    """Claim a run, train it from its last checkpoint, and return its result.

    A finished run is returned as it is, unless `options` ask for more. Raise `HeldError` if another
    process is training it. After every chunk, call `progress` with the latest metrics record and
    the result so far, and stop with a checkpoint if `stop` returns True.
    """
    with where.claimed(config.name) as claim:
        folder = RunFolder(claim.root / config.name)
        ended = None if options.retrain else folder.outcome(any_version=True)
        if ended is not None and (options.evaluation is None or folder.evaluations()):
            return {**ended, "finished": True, "path": claim.place}
        run = api.begin(config, claim.root) if ended is None else api.load(folder.path)
        if options.beliefs and ended is None:
            folder.enable_snapshots()
        evaluate = PeriodicEvaluation(run, options.evaluation)
        evaluate()  # a kill may have come between training and the last evaluation

        def report(run):
            evaluate()
            claim.publish()
            progress(run.latest, run.result)

        api.finish(run, report, stop, options.sinks)
        return {**run.result, "finished": run.finished, "path": claim.place}


def program_key(config: Config) -> tuple[Any, ...]:
    """Return a key that is equal for runs with the same compiled program."""
    return config.agent, config.env, config.stop_when_solved, config.protocol


def run_worker(
    out: str | Path, options: RunOptions, pipe: Connection, stop: Event, cores: set[int]
) -> None:
    """Train each `(number, config)` from the pool, until None; `stop` saves and ends a run."""
    # Workers do not share cores: XLA splits small products over all cores that it sees when it
    # starts, which makes two MinAtar runs side by side as slow as one after the other.
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    where, program = storage.at(out), None
    with contextlib.suppress(EOFError, BrokenPipeError):  # the pool is gone
        while (task := pipe.recv()) is not None:
            number, config = task
            if program not in (None, program_key(config)):
                jax.clear_caches()  # otherwise memory grows with every program
            program = program_key(config)
            pipe.send(_attempt(number, config, where, pipe, stop, options))


def _attempt(
    number: int, config: Config, where: Storage, pipe: Connection, stop: Event, options: RunOptions
) -> tuple[Any, ...]:
    """Train a run and return the message for the pool: kind, run number, details."""
    report = lambda record, now: pipe.send(("update", number, record, now))  # noqa: E731
    try:
        result = train_run(config, where, report, stop.is_set, options)
        if result["finished"] or stop.is_set():
            return "ended", number, result
        return "raised", number, "Its process was terminated."
    except HeldError:
        return "held", number
    except SurveyorError as error:
        return "refused", number, str(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        return "unreachable", number, describe_error(error)
    except Exception as error:
        return "raised", number, describe_error(error)


def describe_error(error: Exception) -> str:
    """Return the type, message and location of an exception as one sentence."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})."
