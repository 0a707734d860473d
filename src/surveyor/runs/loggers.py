"""Metrics to TensorBoard and to Weights & Biases, beside the run folder's own metrics.jsonl."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from surveyor.errors import missing
from surveyor.runs.run import Run


class Sinks(NamedTuple):
    """Where metrics go as well."""

    tensorboard: bool = False
    wandb: str | None = None


def check(*, tensorboard: bool, wandb: str | None) -> Sinks:
    """An error where something is not installed, before any training."""
    if wandb is not None:
        _wandb()
    return Sinks(tensorboard, wandb)


@contextlib.contextmanager
def opened(run: Run, sinks: Sinks | None) -> Iterator[Callable[[Run], None]]:
    """A function that passes on the records that are new; those of before a stop are there."""
    sinks = sinks or Sinks()
    written = len(run.metrics)
    with contextlib.ExitStack() as stack:
        writers = _open(run, sinks, stack)

        def log(run: Run) -> None:
            nonlocal written
            for record in run.metrics[written:]:
                step = record.get("step", record.get("episode", 0))
                for write in writers:
                    write(scalars(record), step)
            written = len(run.metrics)

        yield log


def scalars(record: dict[str, Any]) -> dict[str, float]:
    """The numbers of a record; the mean of those that are lists."""
    found = {}
    for name, value in record.items():
        if isinstance(value, list):
            known = [x for x in value if x is not None]
            value = sum(known) / len(known) if known else None
        if isinstance(value, int | float):
            found[name] = float(value)
    return found


def _open(
    run: Run, sinks: Sinks, stack: contextlib.ExitStack
) -> list[Callable[[dict[str, float], int], None]]:
    writers: list[Callable[[dict[str, float], int], None]] = []
    if sinks.tensorboard and run.folder is not None:
        from tensorboardX import SummaryWriter  # here: it takes long to load

        board = SummaryWriter(str(run.folder.path / "tensorboard"))
        stack.callback(board.close)

        def to_board(values: dict[str, float], step: int) -> None:
            for name, value in values.items():
                board.add_scalar(name, value, step)
            board.flush()

        writers.append(to_board)
    if sinks.wandb is not None:
        wandb = _wandb()
        config = run.config.to_json()
        online = wandb.init(project=sinks.wandb, id=run.config.name, config=config, resume="allow")
        stack.callback(online.finish)
        writers.append(lambda values, step: online.log(values, step=step))
    return writers


def _wandb() -> Any:
    try:
        import wandb  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing("wandb", "wandb", "Weights & Biases") from None
    return wandb
