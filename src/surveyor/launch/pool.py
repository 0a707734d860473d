"""Train many runs in parallel on this machine, one process per core.

On CPUs, separate runs are faster than one batched program: `vmap` of a loop that carries a replay
copies it at every step. Workers reuse their compiled programs and are replaced when they die.
"""

import contextlib
import dataclasses
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from surveyor.launch import work
from surveyor.launch.progress import log
from surveyor.launch.work import RunCallback, RunOptions
from surveyor.runs import storage
from surveyor.runs.api import handle_signals
from surveyor.runs.config import Config
from surveyor.runs.folder import Record

RETRIES = 2
"""Further attempts at a run after its process died or raised an error that is not the user's."""
RETRY_SECONDS = 2.0
"""Seconds before the next attempt at a run that is held elsewhere or whose storage is gone."""


def train_all(
    configs: list[Config],
    out: str | Path,
    callback: RunCallback,
    options: RunOptions = work.DEFAULT_OPTIONS,
) -> list[Record | None]:
    """Train all configurations in the folder or URL `out`; return their results in the same order.

    A result has `finished`, and `failure` if the run could not continue; the run folder holds the
    reason as well. Ctrl-C stops all runs with a checkpoint; the result of a run that had not
    started by then is None. The callback receives positions in `configs`. Finished runs are kept as
    they are unless `options.retrain`.
    """
    where = storage.at(out)
    where.prepare()
    target = partial(work.run_worker, out, options.for_workers())
    return _Pool(configs, where, callback, target).run()


@dataclasses.dataclass
class _Worker:
    process: BaseProcess
    pipe: connection.Connection
    cores: set[int]
    number: int | None = None
    """Run in training; None while idle."""
    program: tuple[Any, ...] | None = None
    """Key of the program compiled last."""


@dataclasses.dataclass
class _Pool:
    """Assign runs to worker processes and handle their results, failures and deaths."""

    configs: list[Config]
    where: storage.Storage
    callback: RunCallback
    target: Callable[[connection.Connection, Event, set[int]], None]

    def __post_init__(self):
        self.results: list[Record | None] = [None] * len(self.configs)
        self.waiting = list(range(len(self.configs)))
        self.programs = [work.program_key(config) for config in self.configs]
        self.delayed: dict[int, float] = {}  # earliest time of the next attempt, by run
        self.unreachable: dict[int, float] = {}  # time since storage cannot be reached, by run
        self.attempts = [0] * len(self.configs)
        self.workers: list[_Worker] = []
        self.context = multiprocessing.get_context("spawn")
        self.stop = self.context.Event()

    def run(self) -> list[Record | None]:
        """Train until all runs have ended or were stopped, and return their results."""
        cores = sorted(os.sched_getaffinity(0))[: len(self.configs)]
        with handle_signals(self._interrupt):
            try:
                self.workers = [self._start({core}) for core in cores]
                while self._busy():
                    self._assign()
                    self._receive()
            finally:
                self._shut_down()
        return self.results

    def _busy(self) -> bool:
        training = any(worker.number is not None for worker in self.workers)
        return training or (bool(self.waiting or self.delayed) and not self.stop.is_set())

    def _assign(self) -> None:
        """Give every idle worker a run, preferably one whose program it has compiled."""
        now = time.monotonic()
        for number in [number for number, due in self.delayed.items() if due <= now]:
            del self.delayed[number]
            if not self._trained_elsewhere(number):
                self.waiting.append(number)
        for worker in self.workers:
            if worker.number is None and self.waiting and not self.stop.is_set():
                taken = {w.program for w in self.workers if w is not worker}
                own = [n for n in self.waiting if self.programs[n] == worker.program]
                free = [n for n in self.waiting if self.programs[n] not in taken]
                number = (own or free or self.waiting)[0]
                self.waiting.remove(number)
                worker.number, worker.program = number, self.programs[number]
                with contextlib.suppress(OSError):  # a dead worker is found by `_receive`
                    worker.pipe.send((number, self.configs[number]))

    def _receive(self) -> None:
        by_pipe = {worker.pipe: worker for worker in self.workers}
        for pipe in connection.wait(list(by_pipe), timeout=0.5):
            worker = by_pipe[pipe]  # pyright: ignore[reportArgumentType]
            try:
                kind, number, details = worker.pipe.recv()
            except (EOFError, OSError):
                self._replace(worker)
                continue
            if kind == "update":
                if self.unreachable.pop(number, None) is not None:
                    log(f"{self.configs[number].name}: storage is back; training continues.")
                self.callback.update(number, *details)
            else:
                worker.number = None
                handlers = {"ended": self._end, "refused": self._fail, "held": self._delay}
                handlers["unreachable"] = self._wait_for_storage
                handlers.get(kind, self._retry)(number, details)

    def _replace(self, worker: _Worker) -> None:
        worker.process.join()
        code, number = worker.process.exitcode or 0, worker.number
        self.workers.remove(worker)
        self.workers.append(self._start(worker.cores))
        if number is not None:
            cause = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._retry(number, f"Its process died ({cause}), perhaps for lack of memory.")

    def _wait_for_storage(self, number: int, reason: str) -> None:
        """Retry later, since storage may return; fail after `storage.TIMEOUT`."""
        now, name = time.monotonic(), self.configs[number].name
        if number not in self.unreachable:
            log(f"{name}: storage cannot be reached; retrying for {storage.TIMEOUT:.0f} s.")
        if now > self.unreachable.setdefault(number, now) + storage.TIMEOUT:
            self._fail(number, f"The run folder could not be read or written: {reason}")
        else:
            self._delay(number)

    def _retry(self, number: int, reason: str) -> None:
        self.attempts[number] += 1
        if self.attempts[number] > RETRIES:
            self._fail(number, f"{reason} Gave up after {RETRIES + 1} attempts.")
        else:
            self._delay(number, seconds=RETRY_SECONDS * (self.attempts[number] - 1))

    def _delay(self, number: int, reason: str = "", seconds: float = RETRY_SECONDS) -> None:
        self.delayed[number] = time.monotonic() + seconds

    def _fail(self, number: int, reason: str) -> None:
        self._end(number, work.failed(self.configs[number], self.where, reason))

    def _trained_elsewhere(self, number: int) -> bool:
        """Return whether another process has finished this run or is training it."""
        config, ended, held = self.configs[number], None, True
        with contextlib.suppress(Exception):  # unreachable storage is asked again later
            ended = self.where.outcome(config)
            held = self.where.is_held(config.name)
        if ended is not None:
            self._end(number, {**ended, "finished": True})
        elif held:
            self._delay(number)
        return ended is not None or held

    def _end(self, number: int, result: Record) -> None:
        self.results[number] = result
        self.callback.end(number, result)

    def _start(self, cores: set[int]) -> _Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=self.target, args=(theirs, self.stop, cores))
        process.start()
        theirs.close()
        return _Worker(process, ours, cores)

    def _shut_down(self) -> None:
        for worker in self.workers:
            with contextlib.suppress(OSError):
                worker.pipe.send(None)
            if worker.number is not None:  # after an error or a second Ctrl-C
                worker.process.kill()
        for worker in self.workers:
            worker.process.join(10)
            worker.process.kill()
            worker.pipe.close()

    def _interrupt(self, number: int, frame: Any) -> None:
        """Stop all runs with a checkpoint at the first Ctrl-C, immediately at the second."""
        if self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()  # workers watch it, and ignore the signal to the whole process group
