"""Send metrics to TensorBoard and Weights & Biases, in addition to metrics.jsonl."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from surveyor.errors import imported
from surveyor.runs.run import Run


class Sinks(NamedTuple):
    """Additional destinations of the metrics."""

    tensorboard: bool = False
    """True to write TensorBoard files to the run folder."""
    wandb: str | None = None
    """Project of Weights & Biases; None for none."""


def check(*, tensorboard: bool, wandb: str | None) -> Sinks:
    """Return the sinks; raise `SurveyorError` if a required package is not installed."""
    if wandb is not None:
        _wandb()
    return Sinks(tensorboard, wandb)


@contextlib.contextmanager
def opened(run: Run, sinks: Sinks) -> Iterator[Callable[[], None]]:
    """Open the sinks and yield a function that sends them the new metrics of the run."""
    written, board, online = len(run.metrics), None, None
    with contextlib.ExitStack() as stack:
        if sinks.tensorboard and run.folder is not None:
            from tensorboardX import SummaryWriter  # slow to import

            board = stack.enter_context(SummaryWriter(str(run.folder.path / "tensorboard")))
        if sinks.wandb is not None:
            name, config = run.config.name, run.config.to_json()
            online = _wandb().init(project=sinks.wandb, id=name, config=config, resume="allow")
            stack.callback(online.finish)

        def log() -> None:
            nonlocal written
            for record in run.metrics[written:]:
                values, step = scalars(record), record.get("step", record.get("episode", 0))
                if board is not None:
                    for name, value in values.items():
                        board.add_scalar(name, value, step)
                    board.flush()
                if online is not None:
                    online.log(values, step=step)
            written = len(run.metrics)

        yield log


def scalars(record: dict[str, Any]) -> dict[str, float]:
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
