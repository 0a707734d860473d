"""Run folders without training, for tests of what reads them."""

import json

VERSIONS = {"surveyor": "0.2.0", "jax": "0.10.0"}


def write_run(folder, name, *, result=None, metrics=(), evaluations=(), **config):
    """Write a run folder; `config` replaces entries of config.json, None removes them."""
    path = folder / name
    path.mkdir(parents=True)
    content = {
        "env": "Tree-4", "agent": "su-plus",
        "hyperparameters": {"curiosity": 0.5, "replay": "uniform"},
        "seed": 0, "episodes": 100, "stop_when_solved": True, "versions": VERSIONS, "commit": "c0",
    } | config  # fmt: skip
    content = {key: value for key, value in content.items() if value is not None}
    (path / "config.json").write_text(json.dumps(content))
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    if result is not None:
        (path / "result.json").write_text(json.dumps(result))
    if evaluations:
        (path / "tests.json").write_text(json.dumps({"tests": evaluations}))
    return path


def interval(episode, *returns, test=None):
    """Return a metrics record of a run by episodes."""
    lengths = [4] * len(returns)
    return {"episode": episode, "returns": returns, "lengths": lengths, "test_return": test}


def step(step, earned, **more):
    """Return a metrics record of a run by steps."""
    return {"step": step, "episodes": step // 10, "return": earned, **more}
