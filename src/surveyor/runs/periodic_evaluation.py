"""Greedy evaluations during training, recorded in the run folder's tests.json."""

from typing import NamedTuple

from surveyor.runs.evaluation import evaluate
from surveyor.runs.run import Run


class EvaluationPlan(NamedTuple):
    """Number and length of the evaluations of a run."""

    times: int
    """Evaluations per run, spaced evenly over its budget; the last is at the end."""
    episodes: int
    """Episodes per evaluation."""


class PeriodicEvaluation:
    """Callback that evaluates a run at the planned times, each exactly once, also after a kill."""

    def __init__(self, run: Run, plan: EvaluationPlan | None):
        self._run, self._plan = run, plan
        written = [] if run.folder is None else run.folder.evaluations()
        now = run.progress
        # Evaluations later than the checkpoint are repeated, with identical results.
        self._records = [record for record in written if record["at"] <= now]
        if run.folder is not None and len(written) > len(self._records):
            run.folder.write_evaluations(self._records)

    def __call__(self) -> None:
        """Evaluate the run if an evaluation is due."""
        run, plan = self._run, self._plan
        if plan is None or run.folder is None:
            return
        now, budget = run.progress, run.config.budget
        due = plan.times if run.finished else plan.times * now // budget
        last = self._records[-1] if self._records else {"number": 0, "of": 1}
        if due * last["of"] > last["number"] * plan.times:
            outcome = evaluate(run, plan.episodes, seed=due)
            returns = {"mean_return": outcome.mean_return, "returns": outcome.returns}
            self._records.append({"number": due, "of": plan.times, "at": now, **returns})
            run.folder.write_evaluations(self._records)
