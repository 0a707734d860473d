"""Several runs at once, one process a core.

On CPUs whole runs side by side beat one batched program: `vmap` of a loop that carries a replay
copies it at every step. A worker keeps its compiled program for the next seed.
"""

import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.queues import Queue, SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from surveyor.errors import SurveyorError
from surveyor.training import api, loggers
from surveyor.training.config import Config
from surveyor.training.folder import Record
from surveyor.training.loggers import Sinks

Progress = Callable[[int, Record, Record], None]
"""Called with a run's number, its newest metrics record and its result so far."""


def train_all(
    configs: list[Config],
    out: Path,
    progress: Progress,
    groups: list[list[int]] | None = None,
    sinks: Sinks | None = None,
) -> list[Record | None]:
    """Train every configuration and return the results in the same order.

    Runs of one group (their numbers) are trained one after another by the same process, which
    compiles their program once; by default each run is its own group. Ctrl-C stops all of them
    with everything saved; the result of a run that had not begun by then is None. One run is
    trained in this process.
    """
    if len(configs) == 1:
        report = functools.partial(progress, 0)
        return [_train(configs[0], out, report, None, sinks)]
    groups = [[number] for number in range(len(configs))] if groups is None else groups
    context = multiprocessing.get_context("spawn")
    queue, stop = context.Queue(), context.Event()
    listener = threading.Thread(target=_listen, args=(queue, progress), daemon=True)
    listener.start()
    cores = sorted(os.sched_getaffinity(0))
    workers = min(len(groups), len(cores))
    shares = context.SimpleQueue()
    for worker in range(workers):
        shares.put(set(cores[worker::workers]))
    # Workers are started deaf to Ctrl-C, which reaches the whole process group; this process alone
    # listens, and tells them.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    before_term = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with ProcessPoolExecutor(workers, context, _prepare, (queue, stop, shares)) as pool:
            futures = [
                pool.submit(_work, [(number, configs[number]) for number in group], out, sinks)
                for group in groups
            ]
            signal.signal(signal.SIGINT, lambda *_: stop.set())
            results = _gather(futures)
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, before_term)
        queue.put(None)
        listener.join()
    return results


def _train(
    config: Config,
    out: Path,
    progress: Callable[[Record, Record], None],
    stop: Callable[[], bool] | None,
    sinks: Sinks | None,
) -> Record:
    run = api.begin(config, out)
    with loggers.opened(run, sinks) as log:

        def report(run):
            log(run)
            progress(run.latest, run.result)

        api.finish(run, report, stop)
    return {**run.result, "finished": run.finished}


def _gather(futures: list[Future[dict[int, Record | None]]]) -> list[Record | None]:
    results: dict[int, Record | None] = {}
    try:
        for future in as_completed(futures):
            results |= future.result()
    except BrokenProcessPool:
        raise SurveyorError(
            "A training process died, perhaps for want of memory; its run can be resumed from its "
            "last checkpoint."
        ) from None
    return [results[number] for number in sorted(results)]


def _listen(queue: "Queue[Any]", progress: Progress) -> None:
    while (message := queue.get()) is not None:
        progress(*message)


def _prepare(queue: "Queue[Any]", stop: Event, shares: "SimpleQueue[set[int]]") -> None:
    """Runs once in every worker, before XLA asks how many threads it may have.

    Each has cores of its own: where they share, XLA splits small products over all of them, and two
    runs of MinAtar side by side are as slow as one after the other.
    """
    global _queue, _stop
    _queue, _stop = queue, stop
    os.sched_setaffinity(0, shares.get())
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work(
    group: list[tuple[int, Config]], out: Path, sinks: Sinks | None
) -> dict[int, Record | None]:
    results: dict[int, Record | None] = {}
    for number, config in group:
        report = functools.partial(_report, number)
        waiting = _stop.is_set()  # and not begun: there is nothing of it to save
        results[number] = None if waiting else _train(config, out, report, _stop.is_set, sinks)
    return results


def _report(number: int, record: Record, now: Record) -> None:
    _queue.put((number, record, now))
