"""The same runs as tasks of a Ray cluster.

A task is a run: Ray finds it a place with the processors and the memory it needs, and starts it
again elsewhere when its process or its node is gone, from the run's last checkpoint in the shared
storage. The driver only asks; killed and started again, it asks for what is left.
"""

import contextlib
import dataclasses
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from typing import Any

from surveyor.errors import HeldError, SurveyorError, missing
from surveyor.training import storage, work
from surveyor.training.config import Config
from surveyor.training.folder import Record, RunFolder
from surveyor.training.parallel import AGAIN_SECONDS, RETRIES, Watcher
from surveyor.training.work import Wishes

ANSWER_SECONDS = 30.0
"""How long a cluster may take to answer."""


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a run asks of a node."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0
    """Bytes; 0 asks for none in particular."""


def train_all(
    configs: list[Config],
    out: str,
    watcher: Watcher,
    wishes: Wishes = work.NONE,
    *,
    address: str | None = None,
    needs: list[Needs] | None = None,
) -> list[Record | None]:
    """As `parallel.train_all`, on the cluster at this address, or on one of this machine that is
    started for it."""
    ray = _ray()
    storage.at(out).prepare()
    needs = needs or [Needs()] * len(configs)
    with _connected(ray, address):
        task = ray.remote(_run)
        # Ray starts a task again when its process or node is gone; what raises it hands over.
        waiting = {
            task.options(
                name=config.name,
                num_cpus=need.cpus,
                num_gpus=need.gpus,
                memory=need.memory or None,
                max_retries=RETRIES + 2,
            ).remote(json.dumps(config.to_json()), str(out), wishes): number
            for number, (config, need) in enumerate(zip(configs, needs, strict=True))
        }
        return _gather(ray, waiting, configs, out, watcher)


def _gather(
    ray: Any, waiting: dict[Any, int], configs: list[Config], out: str, watcher: Watcher
) -> list[Record | None]:
    where = storage.at(out)
    results: list[Record | None] = [None] * len(configs)
    seen: dict[int, int] = {}
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=2.0)
        for reference in ready:
            number = waiting.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                reason = f"Ray gave it up: {str(error).strip().splitlines()[0]}"
                result = {"finished": False, "failure": reason}
            if "failure" in result:
                with contextlib.suppress(OSError, SurveyorError):
                    where.fail(configs[number].name, result["failure"])
                result = {"seed": configs[number].seed, **result}
            results[number] = result
            watcher.end(number, result)
        if not ready:
            _look(where, {number: configs[number] for number in waiting.values()}, seen, watcher)
    return results


def _look(
    where: storage.Storage, configs: dict[int, Config], seen: dict[int, int], watcher: Watcher
) -> None:
    """Report what the metrics of the runs say; they are in the storage, not in messages."""
    with contextlib.suppress(OSError, SurveyorError), where.looked_at() as folder:
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


def _run(content: str, out: str, wishes: Wishes) -> Record:
    """A task: one run, from its checkpoint if it has one; waits while someone else has it."""
    config = Config.from_json(json.loads(content))
    where, tries, gone = storage.at(out), 0, None
    while True:
        try:
            return work.carry_out(config, where, lambda record, now: None, wishes=wishes)
        except HeldError:
            time.sleep(AGAIN_SECONDS)
        except SurveyorError as error:
            return {"finished": False, "failure": str(error)}
        except OSError as error:  # its files may be back before long
            gone = gone or time.monotonic()
            if time.monotonic() > gone + storage.PATIENCE:
                reason = f"Its folder could not be read or written: {work.describe(error)}"
                return {"finished": False, "failure": reason}
            time.sleep(AGAIN_SECONDS)
        except Exception as error:
            tries += 1
            if tries > RETRIES:
                reason = f"{work.describe(error)} It was tried {tries} times."
                return {"finished": False, "failure": reason}
            time.sleep(AGAIN_SECONDS * tries)


@contextlib.contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    # One thread each, as for workers of this machine: the same sums in the same order.
    environment = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    options = {"runtime_env": {"env_vars": environment}, "logging_level": "ERROR"}
    ours = ray.is_initialized()
    if not ours:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            if address is None:
                # A token of its own, or Ray would leave one in the home folder.
                os.environ.setdefault("RAY_AUTH_TOKEN", uuid.uuid4().hex)
                ray.init(include_dashboard=False, log_to_driver=False, **options)
            else:
                _reach(address)
                ray.init(address=address, log_to_driver=False, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            said = str(error).strip().splitlines()[0] if str(error).strip() else "no answer"
            raise SurveyorError(
                f"There is no Ray cluster at '{address or 'this machine'}': {said}"
            ) from None
    try:
        yield
    finally:
        if not ours:
            ray.shutdown()


def _reach(address: str) -> None:
    """An error at once where nothing listens; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise missing("Ray", "ray", "The engine 'ray'") from None
    return ray
