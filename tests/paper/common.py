"""Outcomes and runs that tests of the paper's results share."""

from surveyor.paper.studies import Outcome
from surveyor.runs import api
from surveyor.runs.folder import RunFolder


def outcome(solved, size=10, name="SU (released)", first=None, kind="Tree"):
    """Return the outcome of runs that were solved at these episodes."""
    runs = [
        {"solved_at": s, "first_success": f, "episodes": 100, "gradient_steps": 10, "seconds": 1.0}
        for s, f in zip(solved, first or solved, strict=True)
    ]
    return Outcome(name, f"{kind}-{size}", size, 100, runs)


def evaluated(path, env, seed, means, steps=100, agent="su"):
    """Write the folder of an Atari run with these evaluations, and return its configuration."""
    config = api.configure(agent, env, seed=seed, steps=steps)
    folder = RunFolder.create(path / config.name, config)
    folder.write_evaluations(
        [
            {"number": i + 1, "of": len(means), "at": i, "mean_return": mean, "returns": [mean]}
            for i, mean in enumerate(means)
        ]
    )
    return config
