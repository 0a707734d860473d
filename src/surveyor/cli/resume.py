"""`surveyor resume`."""

from pathlib import Path

from surveyor import agents
from surveyor.cli.options import Flag, Positional, command, conclude
from surveyor.errors import SurveyorError, require_run


def main(argv: list[str]) -> int:
    """Run `surveyor resume`."""
    if any(word.startswith("--agent") for word in argv):
        raise SurveyorError(
            "A run keeps the agent and the hyperparameters that it was started with; "
            "start a new run for others."
        )
    return _resume(argv)


@command
def _resume(
    run: Positional[Path], tensorboard: Flag = False, wandb: str | None = None, json: Flag = False
) -> int:
    """Continue a run, to the same result as if it had never stopped.

    Args:
        run: The run's folder.
        tensorboard: Write the metrics from here on for TensorBoard as well, into the run folder.
        wandb: Send the metrics from here on to this project of Weights & Biases as well.
        json: Print the outcome as one JSON object on the last line.
    """
    require_run(run)
    from surveyor.launch.progress import Overview
    from surveyor.runs import api, folder

    config = folder.RunFolder.open(run).config()
    with Overview([config]) as overview:
        report = lambda run: overview.update(0, run.latest, run.result)  # noqa: E731
        ended = api.resume(run, tensorboard=tensorboard, wandb=wandb, report=report)
        result = {**ended.result, "finished": ended.finished}
        overview.end(0, result)
    return conclude(config.env, agents.name_of(config.agent), [result], as_json=json)
