"""`surveyor evaluate`."""

import dataclasses
import json
import sys
from pathlib import Path

from tyro.conf import Positional

from surveyor.cli.options import Flag, parse


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Play episodes with the greedy policy of a run, on the environment it was trained on."""

    run: Positional[Path]
    """The run's folder."""
    episodes: int | None = None
    """Number of episodes: by default 10, and on Atari 100, as in the paper."""
    video: Path | None = None
    """Write a film of one episode to this file, .mp4 or .gif, if the environment has pictures."""
    json: Flag = False
    """Print the outcome as one JSON object on the last line."""


def main(argv: list[str]) -> int:
    """Run `surveyor evaluate`."""
    options = parse(Evaluate, argv, "surveyor evaluate")
    from surveyor.launch.progress import spent
    from surveyor.runs import film
    from surveyor.runs.evaluation import evaluate
    from surveyor.runs.run import Run

    run = Run.open(options.run, replay=False)
    if options.video is not None:  # first, because it soon fails where nothing can be drawn
        print(f"Film: {film.write(run, options.video)}", file=sys.stderr)
    default = run.config.family.evaluation_episodes
    outcome = evaluate(run, default if options.episodes is None else options.episodes)
    if options.json:
        found = {"mean_return": outcome.mean_return, **dataclasses.asdict(outcome)}
        print(json.dumps({"path": str(options.run), **found}))
        return 0
    known = ""
    if outcome.optimal is not None:
        best = f"the optimal return is {outcome.optimal_return:.4g}"
        known = f", {outcome.optimal:.0%} optimal ({best})"
    if outcome.human_normalised is not None:
        known = f", human-normalised {outcome.human_normalised:.3f}"
    trained = spent(run.runner.result(run.loop))
    print(
        f"{run.config.env}, greedy policy after {trained} of training: mean return "
        f"{outcome.mean_return:.4g} over {len(outcome.returns)} episodes{known}."
    )
    return 0
