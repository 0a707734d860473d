"""When a run's beliefs are looked at, and at what cost."""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from surveyor.training import beliefs
from surveyor.runs.folder import RunFolder
from surveyor.launch.progress import done
from surveyor.runs.run import Run
from surveyor.training.runner import EpisodeRunner

FREE_SECONDS = 0.5
"""Time that looking may always take, beside compilation;"""
SHARE = 0.03
"""beyond that no more than this share of the time spent training."""
LOOK_SECONDS = 0.05
"""What a look is taken to take before the first one has been timed."""
WAITING_BYTES = 256_000_000
"""Memory for what waits to be looked at, unless a single copy takes more."""


class Recorder:
    """Looks at a run before its first episode, then after times that grow by half an octave, and
    at its end.

    At a map of states it looks in a thread, from copies, because training takes the memory of what
    it goes on from; where there is a second core, training waits only for those.
    """

    def __init__(self, run: Run, folder: RunFolder):
        self._run, self._folder = run, folder
        self._spent, self._taken, self._off = 0.0, 0, False
        now, every = done(run.result), run.runner.every
        # What was written after the checkpoint is written again, by the same bits.
        self._last = max((at for at in folder.belief_times() if at <= now), default=-1)
        self._times = [0, *(round(2 ** (k / 2)) * every for k in range(64))]
        run.runner.pauses = self._next
        self._thread = ThreadPoolExecutor(1)
        self._called = False
        self._kept: list[tuple[int, PyTree]] = []
        """What was there to be seen before training was compiled; two compilers at once would wait
        for each other."""
        self._looks: list[Future[None]] = []

    def __call__(self) -> None:
        """Look, if it is time."""
        run, first = self._run, not self._called
        self._called = True
        if self._failed():
            return
        if not first:
            self._submit()
        now, allowed = done(run.result), max(FREE_SECONDS, SHARE * run.seconds)
        ends = run.finished and now > self._last
        if not ends and (now < self._next(self._last) or self._expected() > allowed):
            return
        self._last = now
        if isinstance(run.runner, EpisodeRunner):
            self._keep(now)
            if not first:
                self._submit()
        else:
            self._looks.append(_done_now(partial(self._ask, now)))
        self._failed()

    def close(self) -> None:
        """Wait for all looks."""
        self._submit()
        self._thread.shutdown()
        self._failed()

    def _next(self, at: int) -> int:
        return next(time for time in self._times if time > at)

    def _expected(self) -> float:
        """Time spent looking, and what those that wait will take by what others took."""
        waiting = len(self._kept) + sum(not look.done() for look in self._looks)
        each = self._spent / self._taken if self._taken else LOOK_SECONDS
        return self._spent + waiting * each

    def _failed(self) -> bool:
        """Whether one has failed, which is said once: a run is worth more than a look at it."""
        ended = [look for look in self._looks if look.done()]
        self._looks = [look for look in self._looks if look not in ended]
        errors = [error for look in ended if (error := look.exception()) is not None]
        if errors and not self._off:
            self._off = True
            said = f"What the agent believes is not written down any more: {errors[0]}"
            warnings.warn(said, stacklevel=3)
        return self._off

    def _keep(self, now: int) -> None:
        seen = self._run.loop.agent, self._run.loop.visits
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(seen))
        waiting = len(self._kept) + len(self._looks)
        if self._run.finished:
            self._kept.append((now, seen))
        elif not waiting or (waiting + 1) * size <= WAITING_BYTES:
            self._kept.append((now, jax.tree.map(np.array, seen)))

    def _submit(self) -> None:
        self._looks += [self._thread.submit(self._look, *kept) for kept in self._kept]
        self._kept.clear()

    def _look(self, now: int, seen: PyTree) -> None:
        """On a map of states."""
        run = self._run
        assert isinstance(run.runner, EpisodeRunner)
        look = None if self._off else beliefs.on_a_map(run.agent, run.runner.env)
        if look is not None:
            key = jax.random.fold_in(jax.random.key(run.config.seed), now)
            with self._timed():
                params = run.runner.env.params(run.config.seed)
                self._write(now, look(*seen, params, key))

    def _ask(self, now: int) -> None:
        """About a few observations, once there are any."""
        run, observations = self._run, beliefs.observations(self._run, self._folder)
        if observations is None:
            return
        obs, key = jnp.asarray(observations), jax.random.key(0)
        if not self._taken:  # compiled, which does not count
            beliefs.ask(run.agent, run.state, obs, key)
        with self._timed():
            self._write(now, beliefs.ask(run.agent, run.state, obs, key))

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._spent += time.monotonic() - began
        self._taken += 1

    def _write(self, at: int, found: dict[str, Array]) -> None:
        self._folder.write_belief(at, {name: np.asarray(value) for name, value in found.items()})


def _done_now(look: Callable[[], None]) -> Future[None]:
    future: Future[None] = Future()
    try:
        future.set_result(look())
    except Exception as error:
        future.set_exception(error)
    return future
