"""DQN and SU+ on MinAtar and Atari beside Stable-Baselines3's DQN and a plain PyTorch step of SU.

    make bench-peers                                    # in an environment of its own
    python benchmarks/deep_peers.py [--steps 200000] [--repeats 3]

1. MinAtar Breakout, 8 environments, 2 updates of 32 for 8 steps, 16 filters and a hidden layer of
   128, one core each: steps per second of SU+ in the compiled runner and of DQN in
   Stable-Baselines3, and how many the matrix products of SU+ alone would allow in NumPy.
2. ALE/Breakout, an update of 32 every 4 steps of 4 frames, two cores, a hidden layer of 512 and of
   1024 on both sides: steps per second of DQN, SU+ and Stable-Baselines3's DQN. Ours is not double,
   as theirs. Each side has its own frames: ale-py's vector environment, their wrappers.
3. Where our time goes on Atari: the environment with random actions; acting, observing and writing
   to the replay, which is the run without updates less the environment; and drawing from the replay
   and updating, which is the rest.
4. A gradient step of SU+ with the appendix's network in JAX and in PyTorch, two cores.

Every measurement has a process of its own; they take turns, and the best of each counts.
"""

import dataclasses
import time
from functools import partial
from typing import Any

from measuring import Figures, Part, arguments, median_time, ratio, run, shown, speed, spent
from torch_peers import LEARNING_STARTS, REPLAY, sb3_atari, sb3_minatar, torch_step

AGENTS, WIDTHS, GAME = ("dqn", "su-plus"), (512, 1024), "ALE/Breakout"
ATARI_STEPS = 2_000
"""Most steps to time on Atari, where there are 100 in a second."""
MINATAR_GOAL, ATARI_GOAL, STEP_GOAL = 4.0, 1.5, 1.0
"""Least ratios of our speed to the peer's."""


def su_minatar(steps: int) -> float:
    """Return the steps per second of SU+ in the compiled runner."""
    import surveyor as sv

    agent = dataclasses.replace(sv.SUPlus.preset("minatar"), warmup=1000)
    return speed(agent, "MinAtar/Breakout", steps, after=2000)


def products(_: int) -> float:
    """Return the steps per second if a round had only its matrix products."""
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
    return 8 / best


def atari(name: str, width: int, steps: int, **options: Any) -> float:
    """Return the steps per second of an agent of ours; `options` change its settings."""
    import surveyor as sv

    equal = {"hidden": width, "warmup": LEARNING_STARTS, "replay_capacity": REPLAY, "n_step": 1}
    equal |= ({"double": False} if name == "dqn" else {}) | options
    agent = dataclasses.replace(sv.agents.preset(name, "atari"), **equal)
    return speed(agent, GAME, min(steps, ATARI_STEPS), after=2 * LEARNING_STARTS)


def atari_alone(steps: int) -> float:
    """Return the steps per second of our Atari environment with random actions."""
    import numpy as np

    from surveyor.envs import families

    maker: Any = families.find(GAME).make(GAME, None)
    envs, steps = maker.make(1), min(steps, ATARI_STEPS)
    envs.begin(0)
    actions = np.random.default_rng(0).integers(envs.spec.num_actions, size=(steps, 1))
    began = time.perf_counter()
    for action in actions:
        envs.step(action)
    return steps / (time.perf_counter() - began)


def su_step(_: int) -> float:
    """Return the milliseconds of a gradient step of SU+ on Atari."""
    import jax
    import numpy as np

    import surveyor as sv
    from surveyor._settings import keep_memory
    from surveyor.envs import families
    from surveyor.types import Batch

    keep_memory()  # as the host runner does
    maker: Any = families.find(GAME).make(GAME, None)
    spec, agent, rng = maker.make(1).spec, sv.SUPlus.preset("atari"), np.random.default_rng(0)
    n = agent.batch_size
    obs, following = rng.integers(0, 256, (2, n, *spec.shape), np.uint8)
    action, reward = rng.integers(spec.num_actions, size=n), rng.random(n)
    drawn: Any = (obs, np.int32(action), np.float32(reward), following, np.zeros(n, bool))
    batch = Batch(*drawn, number=jax.numpy.arange(n))
    key = jax.random.key(0, impl="rbg")  # as in training
    state = jax.jit(partial(agent.init, spec))(jax.random.key(0))
    learn = jax.jit(agent.learn, donate_argnums=0)

    def step() -> None:
        nonlocal state
        state = jax.block_until_ready(learn(state, batch, key)[0])

    return 1e3 * median_time(step)


def parts() -> dict[str, Part]:
    """Return every measurement by its name."""
    found = {
        "su-plus MinAtar": Part(su_minatar),
        "sb3 MinAtar": Part(sb3_minatar),
        "products": Part(products),
        "environment": Part(atari_alone, 2),
    }
    for width in WIDTHS:
        found[f"sb3 {width}"] = Part(partial(sb3_atari, width), 2)
        for agent in AGENTS:
            acting = partial(atari, agent, width, gradient_steps=0, warmup=0)
            found[f"{agent} {width}"] = Part(partial(atari, agent, width), 2)
            found[f"{agent} {width} acting"] = Part(acting, 2)
    return found | {"step": Part(su_step, 2), "torch step": Part(torch_step, 2)}


def report(found: Figures) -> None:
    """Print the tables."""
    best = {name: max(values) for name, values in found.items()}
    print("| | surveyor | peer | ratio | target |\n|---|---:|---:|---:|---|")

    def line(what: str, ours: str, peer: str, goal: float, digits: int = 0) -> None:
        cells = f"{shown(found[ours], digits=digits)} | {shown(found[peer], digits=digits)}"
        print(f"| {what} | {cells} | {ratio(best[ours] / best[peer], goal)} |")

    line("MinAtar Breakout, SU+, one core, steps/s", "su-plus MinAtar", "sb3 MinAtar", MINATAR_GOAL)
    for width in WIDTHS:
        for agent in AGENTS:
            what = f"Atari Breakout, {agent}, width {width}, two cores, steps/s"
            line(what, f"{agent} {width}", f"sb3 {width}", ATARI_GOAL, 1)
    steps = [found["step"], found["torch step"]]
    cells = " | ".join(shown(each, min, 1) for each in steps)
    quicker = ratio(min(steps[1]) / min(steps[0]), STEP_GOAL)
    print(f"| gradient step of SU+ on Atari, two cores, ms | {cells} | {quicker} |")
    share = best["su-plus MinAtar"] / best["products"]
    print(f"\nOn MinAtar SU+ has {share:.0%} of the speed that its matrix products would have.")
    print("\nWhere the time of 4 steps goes on Atari, ms\n")
    print("| agent | width | environment | act, observe, write | draw, update | all |")
    print("|---|---|---:|---:|---:|---:|")
    for width in WIDTHS:
        for agent in AGENTS:
            ends = ["environment", f"{agent} {width} acting", f"{agent} {width}"]
            cells = spent([4e3 / best[name] for name in ends], 1)
            print(f"| {agent} | {width} | {cells} |")


def main() -> None:
    options = arguments(__doc__, 200_000, "of SU+ on MinAtar").parse_args()
    if (found := run(__file__, parts(), options)) is not None:
        report(found)


if __name__ == "__main__":
    main()
