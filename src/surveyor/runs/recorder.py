"""Belief snapshots during training, within a limit on the time that they take."""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, PyTree

from surveyor.runs.folder import RunFolder
from surveyor.runs.run import Run

FREE_SECONDS = 0.5
"""Seconds that the snapshots of a run may always take, compilation excluded."""
SHARE = 0.03
"""Share of the training time that snapshots may take beyond `FREE_SECONDS`."""
SNAPSHOT_SECONDS = 0.05
"""Assumed seconds per snapshot until the first one has been timed."""
PENDING_BYTES = 256_000_000
"""Memory limit in bytes for copied states that wait to be processed; one copy may exceed it."""


OBSERVED = "observations"
"""Name of the snapshot that holds the observations which the others are about."""


class BeliefRecorder:
    """Record what an agent believes before training, at intervals growing by √2, and at the end.

    Snapshots of state maps are computed in a thread from copies of the agent's state, because
    training donates its buffers. With a second core, training waits only for the copies.
    """

    def __init__(self, run: Run, folder: RunFolder):
        self._run, self._folder = run, folder
        self._spent, self._taken, self._disabled = 0.0, 0, False
        now, every = run.progress, run.runner.every
        # Snapshots later than the checkpoint are recorded again, with identical content.
        self._last = max((at for at in folder.snapshot_times() if at <= now), default=-1)
        self._times = [0, *(round(2 ** (k / 2)) * every for k in range(64))]
        run.runner.pauses = self._next
        run.runner.observed, self._saved = _observed(folder), False
        self._thread = ThreadPoolExecutor(1)
        self._called = False
        self._copies: list[tuple[int, PyTree]] = []
        """Times and states not yet submitted: the first snapshot waits until training is compiled,
        since two compilations at once would slow each other down."""
        self._pending: list[Future[None]] = []

    def __call__(self) -> None:
        """Record a snapshot if one is due and the time limit allows it."""
        run, first = self._run, not self._called
        self._called = True
        if self._check_failures():
            return
        if not first:
            self._submit()
        now, allowed = run.progress, max(FREE_SECONDS, SHARE * run.seconds)
        at_end = run.finished and now > self._last
        if not at_end and (now < self._next(self._last) or self._expected() > allowed):
            return
        self._last = now
        inputs = run.runner.snapshot_inputs(run.loop)
        if inputs is None:
            return
        if run.runner.threaded_snapshots:
            self._copy(now, inputs)
            if not first:
                self._submit()
        else:
            self._pending.append(_completed(partial(self._record, now, inputs)))
        self._check_failures()

    def close(self) -> None:
        """Wait for all pending snapshots."""
        self._submit()
        self._thread.shutdown()
        self._check_failures()

    def _next(self, at: int) -> int:
        return next(time for time in self._times if time > at)

    def _expected(self) -> float:
        """Return the seconds spent so far plus the estimated cost of pending snapshots."""
        pending = len(self._copies) + sum(not future.done() for future in self._pending)
        each = self._spent / self._taken if self._taken else SNAPSHOT_SECONDS
        return self._spent + pending * each

    def _check_failures(self) -> bool:
        """Return whether recording is disabled; warn and disable it at the first failed snapshot.

        A failed snapshot must not end the run.
        """
        ended = [future for future in self._pending if future.done()]
        self._pending = [future for future in self._pending if future not in ended]
        errors = [error for future in ended if (error := future.exception()) is not None]
        if errors and not self._disabled:
            self._disabled = True
            warnings.warn(f"Belief snapshots are disabled for this run: {errors[0]}", stacklevel=3)
        return self._disabled

    def _copy(self, now: int, state: PyTree) -> None:
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
        pending = len(self._copies) + len(self._pending)
        if self._run.finished:
            self._copies.append((now, state))
        elif not pending or (pending + 1) * size <= PENDING_BYTES:
            self._copies.append((now, jax.tree.map(np.array, state)))

    def _submit(self) -> None:
        self._pending += [self._thread.submit(self._record, *copy) for copy in self._copies]
        self._copies.clear()

    def _record(self, now: int, inputs: PyTree) -> None:
        """Record one snapshot; the first one is computed twice, so that compiling is not timed."""
        runner = self._run.runner
        if self._disabled:
            return
        if runner.observed is not None and not self._saved:
            self._folder.write_snapshot(OBSERVED, {"obs": runner.observed})
            self._saved = True
        if not self._taken and not runner.threaded_snapshots:
            runner.snapshot(inputs, now)
        with self._timed():
            found = runner.snapshot(inputs, now)
            if found is not None:
                self._write(now, found)

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._spent += time.monotonic() - began
        self._taken += 1

    def _write(self, at: int, arrays: dict[str, Array]) -> None:
        self._folder.write_snapshot(at, {name: np.asarray(value) for name, value in arrays.items()})


def _observed(folder: RunFolder) -> np.ndarray | None:
    """Return the observations that earlier snapshots of this run are about."""
    try:
        return folder.read_snapshot(OBSERVED)["obs"]
    except (OSError, ValueError, KeyError):
        return None


def _completed(action: Callable[[], None]) -> Future[None]:
    future: Future[None] = Future()
    try:
        future.set_result(action())
    except Exception as error:
        future.set_exception(error)
    return future
