"""Callbacks of a run: the interface, evaluations during training, and a condition to stop."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from surveyor.errors import SurveyorError, require
from surveyor.runs.evaluation import Evaluation, evaluate
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.run import RECENT, Run


class Callback:
    """Something to do while a run is trained; every method does nothing unless it is overridden.

    Any of them may call `run.stop("why")`: training ends after the current chunk, with a
    checkpoint. If one raises, a checkpoint is written and the error goes on to the caller.
    """

    def start(self, run: Run) -> None:
        """Handle the start of training, which may be that of a resumed run."""

    def record(self, run: Run, record: Record) -> None:
        """Handle a new metrics record."""

    def evaluation(self, run: Run, evaluation: Evaluation) -> None:
        """Handle an evaluation of the run as it is now, by any callback."""

    def end(self, run: Run) -> None:
        """Handle the end of training, also after Ctrl-C or an error: close what was opened."""

    def chunk(self, run: Run) -> None:
        """Handle the end of a chunk of training, after its records: `run.state` is up to date."""

    def pause(self, at: int) -> int | float:
        """Return when, after `at` episodes or steps, a chunk has to end; ∞ for any time."""
        return math.inf


class Report(Callback):
    """Call a function with the run after every chunk of training."""

    def __init__(self, function: Callable[[Run], None]):
        self.function = function

    def chunk(self, run: Run) -> None:
        self.function(run)


class Evaluate(Callback):
    """Evaluate the greedy policy every so many steps and at the end, and keep the best state.

    Evaluations are recorded in the run folder and passed to every callback of the run. A resumed
    run repeats those later than its checkpoint, with the same results.

    **Arguments:**

    - `every`: steps between evaluations, or episodes where agents learn by episodes.
    - `episodes`: greedy episodes in each; the environment family's default if None.
    - `seed`: seed of the first evaluation is one more, of the second two more, and so on.
    - `keep_best`: True to keep the state with the largest mean return, in `best_state` and in the
      run folder, from which `surveyor.load(path, best=True)` reads it.
    - `times`: number of evaluations, spaced evenly over the budget, in place of `every`.
    - `sampled`: episodes with samples of the belief, as in training, beside the greedy ones; their
      mean return is `sampled` in the records.
    """

    def __init__(
        self,
        every: int | None = None,
        episodes: int | None = None,
        seed: int = 0,
        keep_best: bool = True,
        *,
        times: int | None = None,
        sampled: int = 0,
    ):
        require((every is None) != (times is None), "Evaluate needs either every or times.")
        for name, value in (("every", every), ("times", times), ("episodes", episodes)):
            whole = value is None or (isinstance(value, int) and value >= 1)
            require(whole, f"{name} must be a whole number of at least 1, not {value!r}.")
        self.every, self.times, self.episodes = every, times, episodes
        self.seed, self.keep_best, self.sampled = seed, keep_best, sampled
        self.records: list[Record] = []
        """Evaluations so far, as in tests.json: when, and the returns."""
        self.best_state: PyTree = None
        """The agent's state with the best mean return; None before the first evaluation."""
        self.best_return = -math.inf
        """Its mean return."""
        self._budget = 1

    def start(self, run: Run) -> None:
        self.records, self.best_state, self.best_return = [], None, -math.inf
        self._budget, now = run.config.budget, run.progress
        if run.folder is not None:
            written = run.folder.evaluations()
            self.records = [record for record in written if record["at"] <= now]
            if len(written) > len(self.records):
                run.folder.write_evaluations(self.records)
            if self.keep_best and (found := run.read_best()) is not None:
                # It may be later than the checkpoint: training will come there again.
                self.best_state, self.best_return = found[0], found[1]["mean_return"]
        self.chunk(run)  # a kill may have come between a checkpoint and its evaluation

    def chunk(self, run: Run) -> None:
        """Evaluate the run if an evaluation is due."""
        times = self.times or math.ceil(self._budget / (self.every or 1))
        due = times if run.finished else self._due(run.progress)
        last = self.records[-1] if self.records else {"number": 0, "of": 1}
        if due * last["of"] <= last["number"] * times:
            return
        episodes = self.episodes or run.config.family.evaluation_episodes
        found = evaluate(run, episodes, seed=self.seed + due)
        returns: Record = {"mean_return": found.mean_return, "returns": found.returns}
        if self.sampled:
            samples = evaluate(run, self.sampled, seed=self.seed + due, sampled=True)
            returns["sampled"] = samples.mean_return
        self.records.append({"number": due, "of": times, "at": run.progress, **returns})
        if self.keep_best and found.mean_return > self.best_return:
            self._keep(run, found.mean_return)
        if run.folder is not None:
            run.folder.write_evaluations(self.records)
        for callback in run.callbacks:
            callback.evaluation(run, found)

    def pause(self, at: int) -> int | float:
        after = self._due(at) + 1
        return after * self.every if self.every else -(-after * self._budget // (self.times or 1))

    def _due(self, now: int) -> int:
        """Return the number of evaluations that are due by now, before the end."""
        return now // self.every if self.every else (self.times or 1) * now // self._budget

    def _keep(self, run: Run, mean_return: float) -> None:
        # A copy, because training takes over the buffers of the state.
        self.best_state, self.best_return = jax.tree.map(np.array, run.state), mean_return
        if run.folder is not None:
            meta = {"run": run.config.digest(), "at": run.progress, "mean_return": mean_return}
            run.folder.write_best(self.best_state, meta)


class StopWhen(Callback):
    """Stop a run when its mean return is high enough; it can be resumed.

    The return is that of the newest evaluation, or of training where none of the run's callbacks
    is an `Evaluate`.

    **Arguments:**

    - `mean_return`: the mean return to reach.
    - `over`: evaluations to average over, or metrics records; if None the newest evaluation, or the
      newest 10 records.
    """

    def __init__(self, mean_return: float, over: int | None = None):
        require(over is None or over >= 1, f"over must be at least 1, not {over}.")
        self.mean_return, self.over = mean_return, over
        self._evaluated, self._every, self._known = False, 1, list[float]()

    def start(self, run: Run) -> None:
        self._evaluated = any(isinstance(other, Evaluate) for other in run.callbacks)
        self._every = run.runner.every
        if not self._evaluated:
            self._known = [value for record in run.metrics for value in _returns(record)]
            return
        written = [] if run.folder is None else run.folder.evaluations()
        self._known = [each["mean_return"] for each in written if each["at"] <= run.progress]

    def record(self, run: Run, record: Record) -> None:
        if not self._evaluated:
            self._known += _returns(record)
            self._check(run, self.over or RECENT, "training returns")

    def evaluation(self, run: Run, evaluation: Evaluation) -> None:
        if self._evaluated:
            self._known.append(evaluation.mean_return)
            self._check(run, self.over or 1, "evaluation")

    def pause(self, at: int) -> int | float:
        """Return the next record, so that a run stops at the same point on every machine."""
        return math.inf if self._evaluated else (at // self._every + 1) * self._every

    def _check(self, run: Run, over: int, what: str) -> None:
        found = self._known[-over:]
        if len(found) == over and (mean := float(np.mean(found))) >= self.mean_return:
            said = f"the mean return of {what} is {mean:.4g}, at least {self.mean_return:g}"
            run.stop(said)


class Session(contextlib.ExitStack):
    """Call the callbacks of a run while it is trained; end those that were started."""

    def __init__(self, run: Run, callbacks: Iterable[Callback]):
        super().__init__()
        self._run, self._callbacks, self._seen = run, tuple(callbacks), len(run.metrics)

    def start(self) -> None:
        """Start the callbacks; those that evaluate come last, because the others hear of it."""
        run, order = self._run, sorted(self._callbacks, key=lambda one: isinstance(one, Evaluate))
        self._attach(self._callbacks)
        self.callback(self._attach, ())
        with self._saved():
            for callback in order:
                callback.start(run)
                self.callback(callback.end, run)

    def _attach(self, callbacks: tuple[Callback, ...]) -> None:
        run, pauses = self._run, [one.pause for one in callbacks]
        run.callbacks = callbacks
        run.runner.pauses = lambda at: min((pause(at) for pause in pauses), default=math.inf)

    def chunk(self) -> None:
        """Pass on the new records, and the end of a chunk."""
        new, self._seen = self._run.metrics[self._seen :], len(self._run.metrics)
        with self._saved():
            for record in new:
                for callback in self._callbacks:
                    callback.record(self._run, record)
            for callback in self._callbacks:
                callback.chunk(self._run)

    @contextlib.contextmanager
    def _saved(self) -> Iterator[None]:
        """Write a checkpoint if a callback raises, so that nothing is lost."""
        try:
            yield
        except BaseException as error:
            self._run.stop(f"a callback raised {type(error).__name__}: {error}")
            with contextlib.suppress(OSError, SurveyorError):  # the first error counts
                self._run.checkpoint()
            raise


def folder_of(run: Run) -> RunFolder:
    """Return the folder of a run; raise `SurveyorError` if it has none."""
    if run.folder is None:
        raise SurveyorError("TensorBoard's files and beliefs go into the run folder: give `out`.")
    return run.folder


def _returns(record: dict[str, Any]) -> list[float]:
    """Return the mean return of a record, if it has one."""
    found = record.get("returns", [record.get("return")])
    known = [value for value in found if value is not None]
    return [float(np.mean(known))] if known else []
