"""What a process does with the runs that it is given."""

import contextlib
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import jax

from surveyor.errors import HeldError, SurveyorError
from surveyor.runs import api, storage
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.loggers import Sinks
from surveyor.runs.periodic_evaluation import EvaluationPlan, PeriodicEvaluation
from surveyor.runs.storage import Storage


class RunOptions(NamedTuple):
    """What is asked of runs beside training them."""

    retrain: bool = False
    """Whether to train again what has ended."""
    sinks: Sinks | None = None
    evaluation: EvaluationPlan | None = None
    """Greedy episodes during training."""
    beliefs: bool = False
    """Whether to write down what the agent believes, now and then."""


DEFAULT_OPTIONS = RunOptions()


def train_run(
    config: Config,
    where: Storage,
    progress: Callable[[Record, Record], None],
    stop: Callable[[], bool] | None = None,
    options: RunOptions = DEFAULT_OPTIONS,
) -> Record:
    """Train one run that nobody else is training, from its checkpoint if it has one."""
    with where.claimed(config.name) as claim:
        folder = RunFolder(claim.root / config.name)
        ended = None if options.retrain else api.outcome(config, claim.root, any_version=True)
        if ended is not None and (options.evaluation is None or folder.evaluations()):
            return {**ended, "finished": True, "path": claim.place}
        run = api.begin(config, claim.root) if ended is None else api.load(folder.path)
        if options.beliefs and ended is None:
            folder.enable_snapshots()
        examine = PeriodicEvaluation(run, options.evaluation)
        examine()  # it may have been killed before its last test

        def report(run):
            examine()
            claim.publish()
            progress(run.latest, run.result)

        api.finish(run, report, stop, options.sinks)
        return {**run.result, "finished": run.finished, "path": claim.place}


def program_of(config: Config) -> tuple[Any, ...]:
    """What two runs share if they share a compiled program."""
    return config.agent, config.env, config.stop_when_solved, config.protocol


def serve(
    out: str | Path,
    options: RunOptions,
    pipe: connection.Connection,
    stop: Event,
    cores: set[int],
) -> None:
    """What a worker does, from its first run to its last.

    It has cores of its own: where two share, XLA splits small products over all of them, and two
    runs of MinAtar side by side are as slow as one after the other.
    """
    os.sched_setaffinity(0, cores)  # before XLA asks how many threads it may have
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    where, program = storage.at(out), None
    with contextlib.suppress(EOFError, BrokenPipeError):  # whoever started it is gone
        while (task := pipe.recv()) is not None:
            number, config = task
            if program not in (None, program_of(config)):
                jax.clear_caches()  # or memory grows with every program
            program = program_of(config)
            pipe.send(_attempt(number, config, where, pipe, stop, options))


def _attempt(
    number: int,
    config: Config,
    where: Storage,
    pipe: connection.Connection,
    stop: Event,
    options: RunOptions,
) -> tuple[Any, ...]:
    """Train a run, and say what became of it."""

    def report(record: Record, now: Record) -> None:
        pipe.send(("update", number, record, now))

    try:
        result = train_run(config, where, report, stop.is_set, options)
        if result["finished"] or stop.is_set():
            return "ended", number, result
        return "raised", number, "Its process was told to end."
    except HeldError:
        return "held", number
    except SurveyorError as error:
        return "refused", number, str(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        return "gone", number, describe(error)
    except Exception as error:
        return "raised", number, describe(error)


def describe(error: Exception) -> str:
    """What was raised and where, in a sentence."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})."
