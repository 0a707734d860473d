"""Several runs at once, one process a core.

On CPUs whole runs side by side beat one batched program: `vmap` of a loop that carries a replay
copies it at every step. A worker keeps its compiled program for the next seed. One that dies is
replaced, and its run goes on from its checkpoint.
"""

import contextlib
import dataclasses
import functools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from surveyor.errors import SurveyorError
from surveyor.launch import work
from surveyor.launch.work import RunOptions
from surveyor.runs import api, storage
from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.runs.storage import Storage

RETRIES = 2
"""How often a run is tried again after its process died or it raised what is no user's mistake."""
RETRY_SECONDS = 2.0
"""How long a run waits that another process has, or whose storage is gone, before it is tried
again."""


@runtime_checkable
class Watcher(Protocol):
    """Whoever wants to know how the runs are doing, by their numbers."""

    def update(self, number: int, record: Record, now: Record) -> None:
        """A chunk has ended: the newest record of the metrics, and the result so far."""

    def end(self, number: int, result: Record) -> None:
        """A run is over: `finished`, stopped, or with a `failure`."""


def train_all(
    configs: list[Config],
    out: str | Path,
    watcher: Watcher,
    options: RunOptions = work.DEFAULT_OPTIONS,
    *,
    alone: bool = True,
) -> list[Record | None]:
    """Train every configuration and return the results in the same order.

    A result has `finished`, and `failure` where the run could not go on: then the reason is in its
    folder as well. Runs of the same agent on the same environment are given to the same process,
    which compiles their program once. Ctrl-C stops all of them with everything saved; the result
    of a run that had not begun by then is None. What has ended before is taken as it is, unless
    options have it trained again. A single run is trained in this process, where it may be `alone`.
    """
    where = storage.at(out)
    where.prepare()
    if len(configs) == 1 and alone:
        report = functools.partial(watcher.update, 0)
        result = work.train_run(configs[0], where, report, options=options)
        watcher.end(0, result)
        return [result]
    pool = _Pool(configs, where, watcher, functools.partial(work.serve, out, options))
    return pool.run()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass
class _Worker:
    process: BaseProcess
    pipe: connection.Connection
    cores: set[int]
    number: int | None = None
    """The run that it is at."""
    program: int | None = None
    """The program that it has compiled."""


class _Pool:
    """Gives runs to processes, one each, and takes care of whatever becomes of them."""

    def __init__(
        self,
        configs: list[Config],
        where: Storage,
        watcher: Watcher,
        serve: Callable[[connection.Connection, Event, set[int]], None],
    ):
        self.configs, self.where, self.watcher, self.serve = configs, where, watcher, serve
        self.results: list[Record | None] = [None] * len(configs)
        self.waiting = list(range(len(configs)))
        kinds: dict[Any, int] = {}
        self.programs = [kinds.setdefault(work.program_of(c), len(kinds)) for c in configs]
        """Equal numbers for runs that share a compiled program."""
        self.later: dict[int, float] = {}
        """Runs that are not to be tried before a time."""
        self.gone: dict[int, float] = {}
        """Since when the files of a run cannot be reached."""
        self.tries = [0] * len(configs)
        self.workers: list[_Worker] = []
        self.context = multiprocessing.get_context("spawn")
        self.stop = self.context.Event()

    def run(self) -> list[Record | None]:
        """Until all have ended, or were stopped."""
        cores = sorted(os.sched_getaffinity(0))
        count = min(len(self.configs), len(cores))
        with api.handle_signals(self._interrupted):
            try:
                self.workers = [self._start({cores[i]}) for i in range(count)]
                while self._busy():
                    self._deal()
                    self._listen()
            finally:
                self._end()
        return self.results

    def _busy(self) -> bool:
        at_work = any(worker.number is not None for worker in self.workers)
        return at_work or (bool(self.waiting or self.later) and not self.stop.is_set())

    def _deal(self) -> None:
        """Give every idle worker a run: one that it has the program for, if there is one."""
        now = time.monotonic()
        for number in [number for number, due in self.later.items() if due <= now]:
            del self.later[number]
            if not self._ended_elsewhere(number):
                self.waiting.append(number)
        for worker in self.workers:
            if worker.number is None and self.waiting and not self.stop.is_set():
                self._give(worker, self._choose(worker))

    def _choose(self, worker: _Worker) -> int:
        taken = {w.program for w in self.workers if w is not worker}
        own = [n for n in self.waiting if self.programs[n] == worker.program]
        free = [n for n in self.waiting if self.programs[n] not in taken]
        return (own or free or self.waiting)[0]

    def _give(self, worker: _Worker, number: int) -> None:
        self.waiting.remove(number)
        worker.number, worker.program = number, self.programs[number]
        with contextlib.suppress(OSError):  # it has died: it will be heard of
            worker.pipe.send((number, self.configs[number]))

    def _listen(self) -> None:
        by_pipe = {worker.pipe: worker for worker in self.workers}
        for pipe in connection.wait(list(by_pipe), timeout=0.5):
            worker = by_pipe[pipe]  # pyright: ignore[reportArgumentType]
            try:
                kind, number, *rest = worker.pipe.recv()
            except (EOFError, OSError):
                self._died(worker)
                continue
            if kind == "update":
                if self.gone.pop(number, None) is not None:
                    _say(f"{self.configs[number].name}: its folder is back, and it goes on.")
                self.watcher.update(number, *rest)
                continue
            worker.number = None
            if kind == "ended":
                self._over(number, rest[0])
            elif kind == "held":
                self.later[number] = time.monotonic() + RETRY_SECONDS
            elif kind == "gone":
                self._wait_for_storage(number, rest[0])
            elif kind == "refused":
                self._fail(number, rest[0])
            else:
                self._retry(number, rest[0])

    def _died(self, worker: _Worker) -> None:
        worker.process.join()
        code, number = worker.process.exitcode or 0, worker.number
        self.workers.remove(worker)
        self.workers.append(self._start(worker.cores))
        if number is not None:
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._retry(
                number, f"Its process died ({how}); if that was for want of memory, give it more."
            )

    def _wait_for_storage(self, number: int, reason: str) -> None:
        """Files may be gone for a while; what was on them is not."""
        now, name = time.monotonic(), self.configs[number].name
        if number not in self.gone:
            patience = f"{storage.TIMEOUT / 60:.0f} minutes"
            _say(f"{name}: its folder cannot be reached; waiting for it, {patience} at the most.")
        if now > self.gone.setdefault(number, now) + storage.TIMEOUT:
            self._fail(number, f"Its folder could not be read or written: {reason}")
        else:
            self.later[number] = now + RETRY_SECONDS

    def _retry(self, number: int, reason: str) -> None:
        self.tries[number] += 1
        if self.tries[number] > RETRIES:
            self._fail(number, f"{reason} It was tried {RETRIES + 1} times.")
        else:
            self.later[number] = time.monotonic() + RETRY_SECONDS * (self.tries[number] - 1)

    def _fail(self, number: int, reason: str) -> None:
        config = self.configs[number]
        with contextlib.suppress(OSError, SurveyorError):
            self.where.fail(config.name, reason)
        self._over(number, {"seed": config.seed, "finished": False, "failure": reason})

    def _ended_elsewhere(self, number: int) -> bool:
        """Whether another process has meanwhile finished it; if it is still at it, later."""
        config, ended, held = self.configs[number], None, True
        with contextlib.suppress(Exception):  # storage that does not answer is asked again
            ended = self.where.outcome(config)
            held = self.where.is_held(config.name)
        if ended is not None:
            self._over(number, {**ended, "finished": True})
        elif held:
            self.later[number] = time.monotonic() + RETRY_SECONDS
        return ended is not None or held

    def _over(self, number: int, result: Record) -> None:
        self.results[number] = result
        self.watcher.end(number, result)

    def _start(self, cores: set[int]) -> _Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=self.serve, args=(theirs, self.stop, cores))
        process.start()
        theirs.close()
        return _Worker(process, ours, cores)

    def _end(self) -> None:
        for worker in self.workers:
            with contextlib.suppress(OSError):
                worker.pipe.send(None)
            if worker.number is not None:  # an error, or Ctrl-C twice
                worker.process.kill()
        for worker in self.workers:
            worker.process.join(10)
            worker.process.kill()
            worker.pipe.close()

    def _interrupted(self, number: int, frame: Any) -> None:
        """The first Ctrl-C stops the runs with everything saved, the second at once.

        It reaches the whole process group; workers are deaf to it, and are told.
        """
        if self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()
