"""Training of all runs of a sweep, on one machine or on a Ray cluster."""

from surveyor.launch import pool
from surveyor.launch.engine import Engine
from surveyor.launch.progress import Overview
from surveyor.launch.work import RunOptions
from surveyor.runs import storage
from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.sweeps import estimate, spec, status


def train(
    planned: list[spec.Planned], out: str, engine: Engine, run_options: RunOptions
) -> list[Record | None]:
    """Train the runs that have not ended in a folder or URL; return the result of every run."""
    where = storage.at(out)
    where.prepare()
    status.write_plan(where, planned)
    configs = [run.config for run in planned]
    # A run that has ended may still lack the evaluations that are asked for.
    ended = [where.outcome(each) if run_options.evaluation is None else None for each in configs]
    left = [config for config, found in zip(configs, ended, strict=True) if found is None]
    new = iter(_train(left, len(planned), out, engine, run_options) if left else ())
    return [next(new) if found is None else {**found, "finished": True} for found in ended]


def _train(
    configs: list[Config], planned: int, out: str, engine: Engine, run_options: RunOptions
) -> list[Record | None]:
    with Overview(configs, planned - len(configs)) as overview:
        if engine.engine == "local":
            return pool.train_all(configs, out, overview, run_options)
        from surveyor.launch import cluster

        memory = [found.memory for found in estimate.estimates(configs)]
        return cluster.train_all(configs, out, overview, run_options, engine, memory)
