"""Train many runs on a Ray cluster, one task per run.

Ray restarts a task elsewhere if its process or node is lost; it then continues from the last
checkpoint in shared storage. A driver that was killed can be started again.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax

from surveyor import agents
from surveyor.errors import SurveyorError, imported
from surveyor.launch import work
from surveyor.launch.engine import Engine
from surveyor.launch.pool import RETRIES, RETRY_SECONDS
from surveyor.launch.progress import log
from surveyor.launch.work import RunCallback, RunOptions
from surveyor.runs import storage
from surveyor.runs.api import handle_signals
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.run import done

ANSWER_SECONDS = 30.0
"""Seconds within which a cluster must answer."""


def train_all(
    configs: list[Config],
    out: str,
    callback: RunCallback,
    options: RunOptions,
    engine: Engine,
    memory: list[int],
) -> list[Record | None]:
    """Train all configurations as `pool.train_all` does, on the Ray cluster of `engine`.

    Without an address, start a cluster on this machine. All nodes must reach the folder or URL
    `out`. Each run requests the engine's resources and its bytes of `memory`, 0 for any.
    """
    ray = imported("ray", "Ray", "ray", "The engine 'ray'")
    storage.at(out).prepare()
    options = options.for_workers()
    # With one thread, sums have the same order as in the local pool.
    variables = {"NPROC": str(max(1, int(engine.cpus))), "OPENBLAS_NUM_THREADS": "1"}
    if 0 < engine.gpus < 1:
        variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 * engine.gpus:.3f}"
    with _connected(ray, engine.address):
        _warn(ray, engine, memory)
        task = ray.remote(_train)

        def submit(number: int) -> Any:
            return task.options(
                name=configs[number].name,
                num_cpus=engine.cpus,
                num_gpus=engine.gpus,
                memory=memory[number] or None,
                max_retries=RETRIES + 2,  # for lost processes and nodes
                runtime_env={"env_vars": variables},
            ).remote(json.dumps(configs[number].to_json()), str(out), options)

        try:
            with handle_signals(signal.default_int_handler):
                return _collect(ray, submit, configs, out, callback)
        except KeyboardInterrupt:
            log("Stopped; rerun the same command to continue from the last checkpoints.")
            raise


def _collect(
    ray: Any, submit: Callable[[int], Any], configs: list[Config], out: str, callback: RunCallback
) -> list[Record | None]:
    """Submit all runs and wait for their results; resubmit runs held by another driver."""
    where, reached, seen = storage.at(out), True, dict.fromkeys(range(len(configs)), 0)
    results: list[Record | None] = [None] * len(configs)
    waiting = {submit(number): number for number in range(len(configs))}
    log(f"{len(waiting)} runs submitted to the cluster.")
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=2.0)
        for reference in ready:
            number = waiting.pop(reference)
            try:
                kind, found = ray.get(reference)
            except ray.exceptions.RayError as error:
                reason = str(error).strip().splitlines()[0]
                kind, found = "refused", f"Ray gave up on the run: {reason}"
            if kind == "held":
                time.sleep(RETRY_SECONDS)
                waiting[submit(number)] = number
                continue
            if isinstance(found, str):
                found = work.failed(configs[number], where, found)
            results[number] = found
            callback.end(number, found)
        if not ready:
            left = {number: configs[number] for number in waiting.values()}
            before, reached = reached, _report(where, left, seen, callback)
            if before != reached:
                log(f"'{out}' {'is back' if reached else 'cannot be reached; waiting for it'}.")
    return results


def _report(
    where: storage.Storage, configs: dict[int, Config], seen: dict[int, int], callback: RunCallback
) -> bool:
    """Report metrics beyond the `seen` number of records; return False without storage."""
    try:
        with where.mirrored() as folder:  # because tasks send no messages
            for number, config in configs.items():
                metrics = RunFolder(folder / config.name).metrics()
                if len(metrics) > seen[number]:
                    seen[number], last = len(metrics), metrics[-1]
                    so_far = {"steps": last["step"]} if "step" in last else {}
                    so_far["episodes"] = last.get("episodes", last.get("episode", 0))
                    callback.update(number, last, {**so_far, "return": last.get("return")})
    except (OSError, SurveyorError):
        return False
    return True


def _train(content: str, out: str, options: RunOptions) -> tuple[str, Any]:
    """Train one run as a Ray task, from its last checkpoint; return as `work.attempt` does."""
    try:
        agents.import_modules(options.imports)
        config = Config.from_json(json.loads(content))
    except SurveyorError as error:  # this node lacks the user's module, for example
        return "refused", str(error)
    where, attempts, lost_at = storage.at(out), 0, None
    reached = reached_before = 0

    def progress(record: Record, now: Record) -> None:
        nonlocal reached
        reached = max(reached, done(now))

    while True:
        kind, found = work.attempt(config, where, progress, options, stop=lambda: False)
        if kind == "terminated":  # Ray moves a killed task to another process
            os.kill(os.getpid(), signal.SIGKILL)
        # A run that is held is resubmitted by the driver: to wait here would block a processor.
        if kind in ("ended", "refused", "held"):
            jax.clear_caches()  # Ray may reuse the process for another run
            return kind, found
        if kind == "unreachable":  # storage may return
            if lost_at is None or reached > reached_before:
                lost_at, reached_before = time.monotonic(), reached
            if time.monotonic() > lost_at + storage.TIMEOUT:
                return "refused", f"The run folder could not be read or written: {found}"
        elif (attempts := attempts + 1) > RETRIES:
            return "refused", f"{found} Gave up after {attempts} attempts."
        time.sleep(RETRY_SECONDS * max(1, attempts))


@contextlib.contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to the cluster at `address`, or start one; keep a connection that the caller has."""
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    warnings.filterwarnings("ignore", message="os.fork")  # harmless: Ray calls exec right after
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is None:
            # Without a token, Ray would write one to the home folder.
            os.environ.setdefault("RAY_AUTH_TOKEN", uuid.uuid4().hex)
            options |= {"include_dashboard": False, "num_cpus": len(os.sched_getaffinity(0))}
        else:
            _check_address(address)
        ray.init(address="local" if address is None else address, **options)
    except Exception as error:  # Ray has no specific error for a slow node
        reason = (str(error).strip() or "no answer").splitlines()[0]
        place = address or "this machine"
        raise SurveyorError(f"There is no Ray cluster at '{place}': {reason}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _warn(ray: Any, engine: Engine, memory: list[int]) -> None:
    """Print a message if no node has the requested resources: Ray would wait silently."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for size in set(memory):
        wanted = {"CPU": engine.cpus, "GPU": engine.gpus, "memory": size}
        if not any(all(node.get(k, 0) >= v for k, v in wanted.items()) for node in nodes):
            text = f"{engine.cpus:g} CPUs, {engine.gpus:g} GPUs, {size:,} bytes"
            log(f"No node has the requested resources ({text}); waiting for one.")


def _check_address(address: str) -> None:
    """Raise `OSError` soon if no Ray cluster answers; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    if address.startswith("ray://"):  # Ray's client has its own timeout
        return
    probe = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    nothing = subprocess.DEVNULL
    with contextlib.suppress(subprocess.TimeoutExpired):
        if not subprocess.call(probe, timeout=ANSWER_SECONDS, stdout=nothing, stderr=nothing):
            return
    raise ConnectionError("the service there does not answer as Ray")
