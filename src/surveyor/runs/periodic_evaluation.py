"""Tests during training: greedy episodes now and then, written beside the metrics."""

from typing import NamedTuple

from surveyor.launch.progress import done
from surveyor.runs.evaluation import evaluate
from surveyor.runs.run import Run


class EvaluationPlan(NamedTuple):
    """How often, evenly over the budget and the last at its end, and how many episodes each."""

    times: int
    episodes: int


class PeriodicEvaluation:
    """Tests a run when it has come far enough, each time once, also where it was killed between."""

    def __init__(self, run: Run, tests: EvaluationPlan | None):
        self._run, self._tests = run, tests
        kept = [] if run.folder is None else run.folder.evaluations()
        now = done(run.result)
        # What was tested after the checkpoint will be so again, by the same bits.
        self._records = [record for record in kept if record["at"] <= now]
        if run.folder is not None and len(kept) > len(self._records):
            run.folder.write_evaluations(self._records)

    def __call__(self) -> None:
        """Test, if it is time."""
        run, tests = self._run, self._tests
        if tests is None or run.folder is None:
            return
        now, budget = done(run.result), run.config.budget
        passed = tests.times if run.finished else tests.times * now // budget
        last = self._records[-1] if self._records else {"number": 0, "of": 1}
        if passed * last["of"] > last["number"] * tests.times:
            outcome = evaluate(run, tests.episodes, seed=passed)
            found = {"mean_return": outcome.mean_return, "returns": outcome.returns}
            self._records.append({"number": passed, "of": tests.times, "at": now, **found})
            run.folder.write_evaluations(self._records)
