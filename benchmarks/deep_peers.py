"""SU+ on MinAtar and Atari beside Stable-Baselines3's DQN and a plain PyTorch step of it.

    make bench-peers                                    # in an environment of its own
    python benchmarks/deep_peers.py [--steps 400000] [--repeats 2]

1. MinAtar Breakout, 8 environments, 2 updates of 32 for 8 steps, 16 filters and a hidden layer of
   128, one core each: steps a second of SU+ in the compiled runner and of DQN in Stable-Baselines3,
   and how long the matrix products of its steps take by themselves in NumPy.
2. ALE/Breakout, an update of 32 every 4 steps, two cores: steps a second of SU+ and of DQN; a
   gradient step of SU+ with the appendix's network in JAX and in PyTorch; and where its time goes.

Every measurement has a process of its own; they take turns, and the best of each counts.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_peers import (
    ATARI_STEPS,
    LEARNING_STARTS,
    median_time,
    sb3_atari,
    sb3_minatar,
    torch_step,
)


def su_minatar(steps: int) -> dict[str, float]:
    """Steps a second in the compiled runner."""
    import dataclasses

    import jax
    import numpy as np

    import surveyor as sv
    from surveyor.envs import families
    from surveyor.training import functional
    from surveyor.training.steps import Round

    env: Any = families.find("MinAtar/Breakout").make("MinAtar/Breakout", None)
    agent = dataclasses.replace(sv.SUPlus.preset("minatar"), warmup=1000)
    key, each = jax.random.key(0), Round.of(agent)
    loop = jax.jit(lambda key: functional.start(agent, env, key))(key)
    program = functional.compile_train(agent, env)
    loop, _ = jax.block_until_ready(program(loop, key, np.int32(2000 // each.steps)))
    begin = time.perf_counter()
    jax.block_until_ready(program(loop, key, np.int32(steps // each.steps)))
    return {"steps_per_second": steps / (time.perf_counter() - begin)}


def products(_: int) -> dict[str, float]:
    """Steps a second if there were nothing but the matrix products of a round of 8 steps."""
    import numpy as np

    channels, actions, d, hidden, batch, positions = 4, 3, 64, 128, 32, 64
    patch, flat, psi, phi = 9 * channels, 16 * positions, d * (actions + 1), d * actions

    def layers(rows: int) -> list[tuple[int, int, int]]:
        return [(16, patch, rows * positions), (hidden, flat, rows), (psi, hidden, rows)]

    forward = [*layers(batch), (phi, hidden, batch)]
    backward = [(m, b, n) for m, n, b in forward] + [(n, m, b) for m, n, b in forward[1:]]
    update = layers(batch) + forward + backward
    shapes = [*update, *update, *layers(8), *layers(8)[:2], (phi, hidden, 8)]
    pairs = [
        (np.ones((m, n), np.float32), np.ones((n, b), np.float32), np.empty((m, b), np.float32))
        for m, n, b in shapes
    ]
    best = float("inf")
    for _ in range(300):
        begin = time.perf_counter()
        for a, b, out in pairs:
            np.matmul(a, b, out=out)
        best = min(best, time.perf_counter() - begin)
    return {"steps_per_second": 8 / best}


def su_atari(_: int) -> dict[str, float]:
    """Steps a second of the host runner, and milliseconds of each of its parts for 4 steps."""
    import dataclasses

    import jax
    import numpy as np

    import surveyor as sv
    from surveyor.runs import api
    from surveyor.training.host import HostRunner, Verbs
    from surveyor.types import Transition

    agent = dataclasses.replace(
        sv.SUPlus.preset("atari"), warmup=LEARNING_STARTS, replay_capacity=20_000
    )
    config = api.configure(agent, "ALE/Breakout", steps=10 * ATARI_STEPS)
    maker: Any = config.make()
    runner = HostRunner(config.task, maker)
    loop, seconds, since, step = runner.start(), 0.0, 0, 0
    for chunk in runner.chunks(loop):
        loop, step = chunk.loop, int(chunk.loop.learning.step)
        if since:
            seconds += chunk.seconds
        elif step > 2 * LEARNING_STARTS:
            since = step
        if since and step > since + ATARI_STEPS:
            break
    found = {"steps_per_second": (step - since) / seconds}
    verbs, key, envs, replay = (
        Verbs(agent, runner.spec),
        jax.random.key(0),
        runner.envs,
        loop.replay,
    )
    learning, obs, u = loop.learning, loop.obs, np.random.default_rng(0).random(32)
    batch, action = replay.sample(u), np.zeros(1, np.int32)
    after = envs.step(action)

    def observe():
        nonlocal learning
        learning = verbs.observe(learning, obs, action, after, key)
        jax.block_until_ready(learning)

    def update():
        nonlocal learning
        learning = jax.block_until_ready(verbs.update(learning, batch, key)[0])

    def add():
        step: Any = (obs, action, after.reward, after.final, after.terminated)
        replay.add(Transition(*step), after.ended, after.skipped)

    parts: dict[str, tuple[int, Callable[[], object]]] = {
        "act": (4, lambda: np.asarray(verbs.act(learning, obs, key))),
        "environment": (4, lambda: envs.step(action)),
        "posterior": (4, observe),
        "replay, write": (4, add),
        "replay, draw": (1, lambda: replay.sample(u)),
        "gradient step": (1, update),
    }
    for name, (times, part) in parts.items():
        found[name] = 1e3 * times * median_time(part)
    return found


PARTS: dict[str, tuple[Callable[[int], dict[str, float]], int]] = {
    "su_minatar": (su_minatar, 1),
    "sb3_minatar": (sb3_minatar, 1),
    "products": (products, 1),
    "su_atari": (su_atari, 2),
    "sb3_atari": (sb3_atari, 2),
    "torch_step": (torch_step, 2),
}
"""What is measured, and on how many cores."""


def measure(name: str, steps: int) -> dict[str, float]:
    """In a process of its own, on its cores."""
    cores = sorted(os.sched_getaffinity(0))[: PARTS[name][1]]
    # On two cores everyone has the threads that it takes by itself: surveyor tells OpenBLAS to have
    # one, and would be half as fast with more, which spin.
    one = len(cores) == 1
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if one}
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), "--part", name, "--steps", str(steps)],
        env=os.environ | threads,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400_000, help="of SU+ on MinAtar")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--part", choices=PARTS, help="only this, as JSON")
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part][0](options.steps)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in PARTS}
    for _ in range(options.repeats):
        for name in PARTS:
            found[name].append(measure(name, options.steps))
            print(name, {key: round(value, 1) for key, value in found[name][-1].items()})
    speed = {
        name: max(one["steps_per_second"] for one in ones)
        for name, ones in found.items()
        if name != "torch_step"
    }
    ratio = speed["su_minatar"] / speed["sb3_minatar"]
    print(f"\nMinAtar, one core: SU+ is {ratio:.2f} times as fast as Stable-Baselines3 (goal: 4)")
    share = speed["su_minatar"] / speed["products"]
    print(f"  and has {share:.0%} of the speed that its matrix products alone would have")
    best = min(found["su_atari"], key=lambda one: one["gradient step"])
    torch_ms = min(one["ms"] for one in found["torch_step"])
    ratio = speed["su_atari"] / speed["sb3_atari"]
    print(f"Atari, two cores: SU+ is {ratio:.2f} times as fast as Stable-Baselines3 (goal: 1)")
    ratio = torch_ms / best["gradient step"]
    print(f"  and its gradient step {ratio:.2f} times as fast as in plain PyTorch (goal: 1)")
    print("Where the time of 4 steps goes on Atari, ms:")
    for name, ms in best.items():
        if name != "steps_per_second":
            print(f"  {name:15s}{ms:8.2f}")


if __name__ == "__main__":
    main()
