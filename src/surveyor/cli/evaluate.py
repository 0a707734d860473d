"""`surveyor evaluate`."""

import dataclasses
import sys
from json import dumps
from pathlib import Path

from surveyor.cli.options import Flag, Positional, command
from surveyor.errors import require_run


@command
def main(
    run: Positional[Path],
    episodes: int | None = None,
    video: Path | None = None,
    best: Flag = False,
    json: Flag = False,
) -> None:
    """Play episodes with the greedy policy of a run, on the environment it was trained on.

    Args:
        run: The run's folder.
        episodes: Number of episodes: by default 10, and on Atari 100, as in the paper.
        video: Write a film of one episode to this file, .mp4 or .gif, if the environment has
            pictures.
        best: Use the agent's best state, which the callback Evaluate kept in training.
        json: Print the outcome as one JSON object on the last line.
    """
    require_run(run)
    from surveyor.launch.progress import spent
    from surveyor.runs import film
    from surveyor.runs.evaluation import evaluate
    from surveyor.runs.run import Run

    found = Run.open(run, replay=False, best=best)
    if video is not None:  # first, because it soon fails where nothing can be drawn
        print(f"Film: {film.write(found, video)}", file=sys.stderr)
    default = found.config.family.evaluation_episodes
    outcome = evaluate(found, default if episodes is None else episodes)
    if json:
        fields = {"mean_return": outcome.mean_return, **dataclasses.asdict(outcome)}
        print(dumps({"path": str(run), **fields}))
        return
    known = ""
    if outcome.optimal is not None:
        optimum = f"the optimal return is {outcome.optimal_return:.4g}"
        known = f", {outcome.optimal:.0%} optimal ({optimum})"
    if outcome.normalised is not None:
        known = f", normalised {outcome.normalised:.3f} ({found.config.family.scale})"
    trained = spent(found.runner.result(found.loop))
    if found.best is not None:
        at = found.best["at"] * found.config.family.frames_per_step
        trained = f"{at} {found.config.unit} (its best)"
    print(
        f"{found.config.env}, greedy policy after {trained} of training: mean return "
        f"{outcome.mean_return:.4g} over {len(outcome.returns)} episodes{known}."
    )
