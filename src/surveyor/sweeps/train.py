"""Training of all runs of a sweep, on one machine or on a Ray cluster."""

from surveyor.launch import pool, work
from surveyor.launch.engine import Engine
from surveyor.launch.progress import Overview
from surveyor.launch.work import RunOptions
from surveyor.runs import storage
from surveyor.runs.config import Config
from surveyor.runs.folder import Record
from surveyor.sweeps import status
from surveyor.sweeps.estimate import estimates
from surveyor.sweeps.spec import Planned


def train(
    planned: list[Planned], out: str, engine: Engine, run_options: RunOptions = work.DEFAULT_OPTIONS
) -> list[Record | None]:
    """Train the runs that have not ended in a folder or URL; return the result of every run."""
    where = storage.at(out)
    where.prepare()
    status.write_plan(where, planned)
    configs = [run.config for run in planned]
    # A run that has ended may still lack the evaluations that are asked for.
    skip = run_options.evaluation is None
    results: list[Record | None] = [_ended(where, config) if skip else None for config in configs]
    waiting = [number for number, result in enumerate(results) if result is None]
    if waiting:
        left = [configs[number] for number in waiting]
        with Overview(left, len(configs) - len(left)) as overview:
            new = _train(left, out, engine, overview, run_options)
        for number, result in zip(waiting, new, strict=True):
            results[number] = result
    return results


def _train(
    configs: list[Config], out: str, engine: Engine, overview: Overview, run_options: RunOptions
) -> list[Record | None]:
    if engine.engine == "local":
        return pool.train_all(configs, out, overview, run_options, alone=False)
    from surveyor.launch import cluster

    memory = [found.memory for found in estimates(configs)]
    return cluster.train_all(configs, out, overview, run_options, engine, memory)


def _ended(where: storage.Storage, config: Config) -> Record | None:
    found = where.outcome(config)
    return None if found is None else {**found, "finished": True}
