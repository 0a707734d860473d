"""Runs side by side."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor

from surveyor.training import parallel


def cores() -> tuple[int, set[int]]:
    time.sleep(0.5)  # so that no worker takes two of these
    return os.getpid(), os.sched_getaffinity(0)


def test_every_worker_has_cores_of_its_own():
    context = multiprocessing.get_context("spawn")
    shares = context.SimpleQueue()
    mine = sorted(os.sched_getaffinity(0))
    for worker in range(len(mine)):
        shares.put({mine[worker]})
    given = (context.Queue(), context.Event(), shares)
    with ProcessPoolExecutor(len(mine), context, parallel._prepare, given) as pool:
        found = dict(task.result() for task in [pool.submit(cores) for _ in mine])
    assert len(found) == len(mine)
    assert sorted(core for share in found.values() for core in share) == mine
