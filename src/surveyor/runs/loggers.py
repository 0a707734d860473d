"""Send metrics to TensorBoard and Weights & Biases, in addition to metrics.jsonl."""

from pathlib import Path
from typing import Any, NamedTuple

from surveyor.errors import imported
from surveyor.runs.callbacks import Callback, folder_of
from surveyor.runs.evaluation import Evaluation
from surveyor.runs.folder import Record
from surveyor.runs.run import Run

EVALUATED = "evaluation_return"
"""Name of the mean return of evaluations."""


class Sinks(NamedTuple):
    """Additional destinations of the metrics."""

    tensorboard: bool = False
    """True to write TensorBoard files to the run folder."""
    wandb: str | None = None
    """Project of Weights & Biases; None for none."""

    def callbacks(self) -> list[Callback]:
        """Return the callbacks that send the metrics."""
        board = [TensorBoard()] if self.tensorboard else []
        return [*board, *([] if self.wandb is None else [WandB(self.wandb)])]


def check(*, tensorboard: bool, wandb: str | None) -> Sinks:
    """Return the sinks; raise `SurveyorError` if a required package is not installed."""
    if wandb is not None:
        _wandb()
    return Sinks(tensorboard, wandb)


class TensorBoard(Callback):
    """Write metrics and evaluations for TensorBoard.

    **Arguments:**

    - `path`: folder for the files; tensorboard in the run folder if None.
    """

    def __init__(self, path: str | Path | None = None):
        self.path = path
        self._board: Any = None

    def start(self, run: Run) -> None:
        from tensorboardX import SummaryWriter  # slow to import

        self._board = SummaryWriter(str(self.path or folder_of(run).path / "tensorboard"))

    def record(self, run: Run, record: Record) -> None:
        for name, value in scalars(record).items():
            self._board.add_scalar(name, value, time_of(record))
        self._board.flush()

    def evaluation(self, run: Run, evaluation: Evaluation) -> None:
        self._board.add_scalar(EVALUATED, evaluation.mean_return, run.progress)

    def end(self, run: Run) -> None:
        self._board.close()


class WandB(Callback):
    """Send metrics and evaluations to Weights & Biases.

    **Arguments:**

    - `project`: name of the project.
    """

    def __init__(self, project: str):
        self.project, self._online = project, None
        _wandb()  # raises before anything is trained

    def start(self, run: Run) -> None:
        named: dict[str, Any] = {"id": run.config.name, "config": run.config.to_json()}
        self._online = _wandb().init(project=self.project, resume="allow", **named)

    def record(self, run: Run, record: Record) -> None:
        if self._online is not None:
            self._online.log(scalars(record), step=time_of(record))

    def evaluation(self, run: Run, evaluation: Evaluation) -> None:
        if self._online is not None:
            self._online.log({EVALUATED: evaluation.mean_return}, step=run.progress)

    def end(self, run: Run) -> None:
        if self._online is not None:
            self._online.finish()


def time_of(record: Record) -> int:
    """Return the steps or episodes at which a record was made."""
    return record.get("step", record.get("episode", 0))


def scalars(record: Record) -> dict[str, float]:
    """Return the numeric values of a metrics record, with lists replaced by their means."""
    found = {}
    for name, value in record.items():
        if isinstance(value, list):
            known = [x for x in value if x is not None]
            value = sum(known) / len(known) if known else None
        if isinstance(value, int | float):
            found[name] = float(value)
    return found


def _wandb() -> Any:
    return imported("wandb", "wandb", "wandb", "Weights & Biases")
