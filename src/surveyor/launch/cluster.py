"""The same runs as tasks of a Ray cluster.

A task is a run: Ray finds it a place with the processors and the memory it resources, and starts it
again elsewhere when its process or its node is gone, from the run's last checkpoint in the shared
storage. The driver only asks; killed and started again, it asks for what is left.
"""

import contextlib
import dataclasses
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
from pathlib import Path
from typing import Any

import jax

from surveyor.errors import HeldError, SurveyorError, missing
from surveyor.launch import work
from surveyor.launch.pool import RETRIES, RETRY_SECONDS, Watcher
from surveyor.launch.progress import done
from surveyor.launch.work import RunOptions
from surveyor.runs import storage
from surveyor.runs.api import handle_signals
from surveyor.runs.config import Config
from surveyor.runs.folder import Record, RunFolder

ANSWER_SECONDS = 30.0
"""How long a cluster may take to answer."""


@dataclasses.dataclass(frozen=True)
class Resources:
    """What a run asks of a node."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0
    """Bytes; 0 asks for none in particular."""

    def environment(self) -> dict[str, str]:
        """Variables of its process: as many threads as it has processors (with one the sums have
        the same order as in workers of one machine), and no more of an accelerator than its
        share."""
        found = {"NPROC": str(max(1, int(self.cpus))), "OPENBLAS_NUM_THREADS": "1"}
        if 0 < self.gpus < 1:
            found["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 * self.gpus:.3f}"
        return found


def train_all(
    configs: list[Config],
    out: str,
    watcher: Watcher,
    options: RunOptions = work.DEFAULT_OPTIONS,
    *,
    address: str | None = None,
    resources: list[Resources] | None = None,
) -> list[Record | None]:
    """As `parallel.train_all`, on the cluster at this address, or on one of this machine that is
    started for it."""
    ray = _ray()
    storage.at(out).prepare()
    resources = resources or [Resources()] * len(configs)
    with _connected(ray, address):
        _warn(ray, resources)
        task = ray.remote(_run)

        def submit(number: int) -> Any:
            need, content = resources[number], json.dumps(configs[number].to_json())
            return task.options(
                name=configs[number].name,
                num_cpus=need.cpus,
                num_gpus=need.gpus,
                memory=need.memory or None,
                max_retries=RETRIES + 2,  # when its process or node is gone
                runtime_env={"env_vars": need.environment()},
            ).remote(content, str(out), options)

        try:
            with handle_signals(_interrupt):
                return _gather(ray, submit, configs, out, watcher)
        except KeyboardInterrupt:
            print(
                "Stopped; runs go back to their last checkpoints. Give the same command to go on.",
                file=sys.stderr,
            )
            raise


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _gather(
    ray: Any, submit: Callable[[int], Any], configs: list[Config], out: str, watcher: Watcher
) -> list[Record | None]:
    where = storage.at(out)
    results: list[Record | None] = [None] * len(configs)
    waiting = {submit(number): number for number in range(len(configs))}
    seen: dict[int, int] = {}
    print(f"{len(waiting)} runs are asked of the cluster.", file=sys.stderr, flush=True)
    reached = True
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=2.0)
        for reference in ready:
            number = waiting.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                reason = f"Ray gave it up: {str(error).strip().splitlines()[0]}"
                result = {"finished": False, "failure": reason}
            if result.get("held"):  # by another driver: not with a processor kept for it
                time.sleep(RETRY_SECONDS)
                waiting[submit(number)] = number
                continue
            if "failure" in result:
                with contextlib.suppress(OSError, SurveyorError):
                    where.fail(configs[number].name, result["failure"])
                result = {"seed": configs[number].seed, **result}
            results[number] = result
            watcher.end(number, result)
        if not ready:
            left = {number: configs[number] for number in waiting.values()}
            before, reached = reached, _look(where, left, seen, watcher)
            if before and not reached:
                print(f"'{out}' cannot be reached; waiting for it.", file=sys.stderr, flush=True)
            elif reached and not before:
                print(f"'{out}' is back.", file=sys.stderr, flush=True)
    return results


def _look(
    where: storage.Storage, configs: dict[int, Config], seen: dict[int, int], watcher: Watcher
) -> bool:
    """Report what the metrics of the runs say; they are in the storage, not in messages. False if
    that cannot be reached."""
    try:
        with where.mirrored() as folder:
            _compare(folder, configs, seen, watcher)
    except (OSError, SurveyorError):
        return False
    return True


def _compare(
    folder: Path, configs: dict[int, Config], seen: dict[int, int], watcher: Watcher
) -> None:
    """With what was seen the last time."""
    for number, config in configs.items():
        metrics = RunFolder(folder / config.name).metrics()
        if len(metrics) > seen.get(number, 0):
            seen[number] = len(metrics)
            last = metrics[-1]
            now = {"episodes": last.get("episodes", last.get("episode", 0))}
            if "step" in last:
                now["steps"] = last["step"]
            else:
                now |= {"first_success": None, "solved_at": None}
            if last.get("return") is not None:
                now["return"] = last["return"]
            watcher.update(number, last, now)


def _run(content: str, out: str, options: RunOptions) -> Record:
    """A task: one run, from its checkpoint if it has one."""
    config = Config.from_json(json.loads(content))
    where, tries, gone, far = storage.at(out), 0, None, [0, 0]

    def progress(record: Record, now: Record) -> None:
        far[0] = max(far[0], done(now))

    while True:
        try:
            result = work.train_run(config, where, progress, options=options)
            if not result["finished"]:  # it was told to end: Ray gives it to another
                os.kill(os.getpid(), signal.SIGKILL)
            jax.clear_caches()  # the process may be given another run
            return result
        except HeldError:
            return {"finished": False, "held": True}
        except SurveyorError as error:
            return {"finished": False, "failure": str(error)}
        except OSError as error:  # its files may be back before long
            if gone is None or far[0] > far[1]:
                gone, far[1] = time.monotonic(), far[0]
            if time.monotonic() > gone + storage.TIMEOUT:
                reason = f"Its folder could not be read or written: {work.describe(error)}"
                return {"finished": False, "failure": reason}
            time.sleep(RETRY_SECONDS)
        except Exception as error:
            tries += 1
            if tries > RETRIES:
                reason = f"{work.describe(error)} It was tried {tries} times."
                return {"finished": False, "failure": reason}
            time.sleep(RETRY_SECONDS * tries)


@contextlib.contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    options: dict[str, Any] = {"logging_level": "ERROR"}
    ours = ray.is_initialized()
    if not ours:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        warnings.filterwarnings("ignore", message="os.fork")  # Ray executes another program next
        try:
            if address is None:
                # A token of its own, or Ray would leave one in the home folder.
                os.environ.setdefault("RAY_AUTH_TOKEN", uuid.uuid4().hex)
                cores = len(os.sched_getaffinity(0))
                options |= {"include_dashboard": False, "num_cpus": cores}
                ray.init(address="local", log_to_driver=False, **options)
            else:
                _reach(address)
                ray.init(address=address, log_to_driver=False, **options)
        except Exception as error:  # Ray has no kind of its own for a node that is slow to start
            said = str(error).strip().splitlines()[0] if str(error).strip() else "no answer"
            raise SurveyorError(
                f"There is no Ray cluster at '{address or 'this machine'}': {said}"
            ) from None
    try:
        yield
    finally:
        if not ours:
            ray.shutdown()


def _warn(ray: Any, resources: list[Resources]) -> None:
    """Say so where no node has what a run resources: Ray would wait for one without a word."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for need in set(resources):
        wanted = {"CPU": need.cpus, "GPU": need.gpus, "memory": need.memory}
        if not any(all(node.get(k, 0) >= v for k, v in wanted.items()) for node in nodes):
            said = f"{need.cpus:g} processors, {need.gpus:g} accelerators, {need.memory:,} bytes"
            print(f"No node has what a run resources ({said}); waiting for one.", file=sys.stderr)


def _reach(address: str) -> None:
    """An error soon where nothing listens, or something else does; Ray itself would wait for
    minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    if address.startswith("ray://"):  # Ray's own client, which ends its waiting by itself
        return
    probe = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    nothing = subprocess.DEVNULL
    try:
        answer = subprocess.run(probe, timeout=ANSWER_SECONDS, stdout=nothing, stderr=nothing)
    except subprocess.TimeoutExpired:
        raise ConnectionError("what listens there gives no answer of Ray's") from None
    if answer.returncode != 0:
        raise ConnectionError("what listens there gives no answer of Ray's")


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise missing("Ray", "ray", "The engine 'ray'") from None
    return ray
