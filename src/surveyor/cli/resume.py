"""`surveyor resume`."""

import dataclasses
from pathlib import Path

from tyro.conf import Positional

from surveyor import agents
from surveyor.cli.options import Flag, conclude, parse
from surveyor.errors import SurveyorError


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue a run, to the same result as if it had never stopped."""

    run: Positional[Path]
    """The run's folder."""
    tensorboard: Flag = False
    """Write the metrics from here on for TensorBoard as well, into the run folder."""
    wandb: str | None = None
    """Send the metrics from here on to this project of Weights & Biases as well."""
    json: Flag = False
    """Print the outcome as one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Run `surveyor resume`."""
    if any(word.startswith("--agent") for word in argv):
        raise SurveyorError(
            "A run keeps the agent and the hyperparameters that it was started with; "
            "start a new run for others."
        )
    options = parse(Resume, argv, "surveyor resume")
    from surveyor.launch.progress import Reporter
    from surveyor.runs import api
    from surveyor.runs.folder import RunFolder

    config = RunFolder.open(options.run).config()
    with Reporter([f"{config.env} seed {config.seed}"], config) as reporter:
        run = api.resume(
            options.run,
            tensorboard=options.tensorboard,
            wandb=options.wandb,
            report=lambda run: reporter.update(0, run.latest, run.result),
        )
        result = {**run.result, "finished": run.finished}
        reporter.end(0, result)
    return conclude(config.env, agents.name_of(config.agent), [result], as_json=options.json)
