"""Belief snapshots during training, within a limit on the time that they take."""

import contextlib
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import numpy as np
from jaxtyping import PyTree

from surveyor.errors import SurveyorError
from surveyor.runs.callbacks import Callback, folder_of
from surveyor.runs.config import Config
from surveyor.runs.folder import Arrays, RunFolder
from surveyor.runs.run import Run
from surveyor.training import runner

FREE_SECONDS, SHARE = 0.5, 0.03
"""Snapshots may take these seconds, compilation excluded, or this share of the training time."""
SNAPSHOT_SECONDS = 0.05
"""Assumed seconds per snapshot until the first one has been timed."""
PENDING_BYTES = 256_000_000
"""Memory limit in bytes for copied states that wait to be processed; one copy may exceed it."""
OBSERVED = "observations"
"""Name of the snapshot that holds the observations which the others are about."""
RAW, RAW_BYTES = "raw", 1_000_000
"""Prefix of the arrays of an agent's state, and the largest state that is stored itself."""


class Beliefs(Callback):
    """Record what an agent believes before training, at intervals growing by √2, and at the end.

    Snapshots of state maps are computed in a thread from copies of the agent's state, because
    training donates its buffers. With a second core, training waits only for the copies. Where such
    a state is small, it is the snapshot: compiling the program that computes beliefs would take
    longer than training, and `read` does it when somebody looks.
    """

    _run: Run
    _folder: RunFolder

    def start(self, run: Run) -> None:
        self._run, self._folder = run, folder_of(run)
        self._folder.enable_snapshots()
        self._ended = run.finished or not self._folder.snapshots_enabled
        self._spent, self._taken, self._saved, self._warned = 0.0, 0, False, False
        now, every = run.progress, run.runner.every
        # Snapshots later than the checkpoint are recorded again, with identical content.
        self._last = max((at for at in self._folder.snapshot_times() if at <= now), default=-1)
        self._times = [0, *(round(2 ** (k / 2)) * every for k in range(64))]
        with contextlib.suppress(OSError, ValueError, KeyError):
            run.runner.observed = self._folder.read_snapshot(OBSERVED)["obs"]
        self._thread = ThreadPoolExecutor(1)
        self._copies: list[tuple[int, PyTree]] = []
        """Times and states not yet submitted: the first snapshot waits until training is compiled,
        since two compilations at once would slow each other down."""
        self._submitted: list[Future[None]] = []
        self._error: Exception | None = None
        """Why a snapshot failed, which must not end the run: no further ones are recorded."""
        self._take_if_due()

    def chunk(self, run: Run) -> None:
        """Record a snapshot if one is due and the time limit allows it."""
        self._take_if_due()
        self._submit()
        self._warn()

    def end(self, run: Run) -> None:
        """Wait for all pending snapshots."""
        self._submit()
        self._thread.shutdown()
        self._warn()

    def pause(self, at: int) -> int | float:
        return self._next(at)

    def _take_if_due(self) -> None:
        if not self._ended and self._error is None and self._due():
            self._take(self._run.progress)
        self._warn()

    def _next(self, at: int) -> int:
        return next(time for time in self._times if time > at)

    def _waiting(self) -> int:
        return len(self._copies) + sum(not future.done() for future in self._submitted)

    def _due(self) -> bool:
        run, now = self._run, self._run.progress
        each = self._spent / self._taken if self._taken else SNAPSHOT_SECONDS
        expected = self._spent + self._waiting() * each
        allowed = expected <= max(FREE_SECONDS, SHARE * run.seconds)
        at_end = run.finished and now > self._last
        return at_end or (allowed and now >= self._next(self._last))

    def _take(self, now: int) -> None:
        run, self._last = self._run, now
        inputs = run.runner.snapshot_inputs(run.loop)
        if inputs is not None and not run.runner.threaded_snapshots:
            self._record(now, inputs)
        elif inputs is not None:
            size, waiting = sum(leaf.nbytes for leaf in jax.tree.leaves(inputs)), self._waiting()
            if run.finished:
                self._copies.append((now, inputs))
            elif not waiting or (waiting + 1) * size <= PENDING_BYTES:
                self._copies.append((now, jax.tree.map(np.array, inputs)))

    def _warn(self) -> None:
        """Warn, once, that a snapshot has failed."""
        if self._error is not None and not self._warned:
            self._warned = True
            warnings.warn(f"Belief snapshots are disabled for the run: {self._error}", stacklevel=3)

    def _submit(self) -> None:
        self._submitted += [self._thread.submit(self._record, *copy) for copy in self._copies]
        self._copies.clear()

    def _record(self, now: int, inputs: PyTree) -> None:
        """Record one snapshot; the first one is computed twice, so that compiling is not timed."""
        mine = self._run.runner
        if self._error is not None:
            return
        try:
            if mine.observed is not None and not self._saved:
                images = mine.observed_images(inputs)
                shown = {} if images is None else {"images": images}
                self._folder.write_snapshot(OBSERVED, {"obs": mine.observed, **shown})
                self._saved = True
            if not self._taken and not mine.threaded_snapshots:
                mine.snapshot(inputs, now)
            began = time.monotonic()
            found = _raw(self._run, inputs) or mine.snapshot(inputs, now)
            if found is not None:
                self._folder.write_snapshot(now, {k: np.asarray(v) for k, v in found.items()})
            self._spent += time.monotonic() - began
            self._taken += 1
        except Exception as error:
            self._error = error


def _raw(run: Run, inputs: PyTree) -> dict[str, np.ndarray] | None:
    """Return the arrays of a small state that this library can read back, or None."""
    leaves = jax.tree.leaves(inputs)
    parts = (run.config.agent, run.runner.env)
    ours = all(type(part).__module__.startswith("surveyor.") for part in parts)
    ours = ours and run.config.source is None
    small = sum(leaf.nbytes for leaf in leaves) <= RAW_BYTES
    if not (ours and small and run.runner.threaded_snapshots):
        return None
    return {f"{RAW}{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}


def read(folder: RunFolder, at: int, config: Config | None = None) -> Arrays:
    """Return the beliefs of a snapshot; if it is a state, compute them and replace it."""
    found = folder.read_snapshot(at)
    if f"{RAW}0" not in found:
        return found
    config = folder.config() if config is None else config
    looked = runner(config.task, config.make())
    shapes = looked.snapshot_inputs(jax.eval_shape(looked.start))
    leaves = [found[f"{RAW}{i}"] for i in range(len(found))]
    for leaf, known in zip(leaves, jax.tree.leaves(shapes), strict=True):
        if (leaf.shape, leaf.dtype) != (known.shape, known.dtype):
            raise ValueError("it is the state of another agent")
    beliefs = looked.snapshot(jax.tree.unflatten(jax.tree.structure(shapes), leaves), at)
    arrays = {name: np.asarray(value) for name, value in (beliefs or {}).items()}
    with contextlib.suppress(OSError, SurveyorError):  # somebody else's folder
        folder.write_snapshot(at, arrays)
    return arrays
