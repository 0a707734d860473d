"""The cost of a gradient step of SU+ beside DQN's with the same network and batch.

    python benchmarks/gradient_steps.py        # about two minutes

Both agents draw batches from the replay of a short run and learn from them, each in an XLA program
of its own on one core, turn and turn about. Acting is not in it. Times are the best of all. DQN is
double and has SU+'s sizes, rates and network, normalised and averaged as SU+'s. The goal is 1.5.
"""

import argparse
import dataclasses
import os
import statistics
import time
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before JAX counts them

import jax

import surveyor as sv
from surveyor.agents.learner import QLearner
from surveyor.envs import families
from surveyor.runs import api
from surveyor.training import runner

ENVIRONMENTS = {
    "vector, MLP of 128": "bsuite/cartpole_swingup/0",
    "MiniGrid, board network of 256": "MiniGrid-DoorKey-6x6-v0",
    "DeepSea picture, MLP of 128": "DeepSea-20",
    "MinAtar, convolution of 128": "MinAtar/Breakout",
}
GOAL = 1.5


def pair(env: str) -> tuple[Any, Any]:
    """Return SU+ and DQN with the same sizes, rates and network for an environment."""
    ours = sv.agents.preset("su-plus", families.find(env).preset(env))
    shared = {field.name: getattr(ours, field.name) for field in dataclasses.fields(QLearner)}
    return ours, sv.DQN(double=True, **shared)


class Learned:
    """An agent after a short run, ready to take gradient steps from its replay."""

    def __init__(self, agent: Any, env: str, steps: int):
        protocol = "compiled" if "compiled" in families.find(env).protocols else None
        early = dataclasses.replace(agent, warmup=100)
        config = api.configure(early, env, steps=2_000, protocol=protocol)
        trained = runner(config.task, config.make())
        *_, last = trained.chunks(trained.start())
        learner, replay = trained.agent, last.loop.replay
        self.state, self.steps = last.loop.agent_state, steps

        def step(state: Any, key: Any) -> tuple[Any, None]:
            draw, learn = jax.random.split(key)
            batch = replay.sample(jax.random.uniform(draw, (agent.batch_size,)))
            return learner.learn(state, batch, learn)[0], None

        @jax.jit
        def program(state: Any) -> Any:
            return jax.lax.scan(step, state, jax.random.split(jax.random.key(0), steps))[0]

        self.program = program
        jax.block_until_ready(program(self.state))

    def microseconds(self) -> float:
        """Return the time of a gradient step."""
        began = time.perf_counter()
        jax.block_until_ready(self.program(self.state))
        return (time.perf_counter() - began) / self.steps * 1e6


def main() -> None:
    """Print a table of times and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="gradient steps to time at once")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", nargs="*", default=list(ENVIRONMENTS.values()))
    options = parser.parse_args()
    print("| network | SU+, µs | DQN, µs | median ratio (range) | goal |\n|---|---|---|---|---|")
    for name, env in ENVIRONMENTS.items():
        if env not in options.only:
            continue
        ours, other = (Learned(agent, env, options.steps) for agent in pair(env))
        times = [(ours.microseconds(), other.microseconds()) for _ in range(options.repeats)]
        ratios = sorted(a / b for a, b in times)
        middle = statistics.median(ratios)
        low, high = (min(each[i] for each in times) for i in range(2))
        verdict = f"≤ {GOAL}: {'met' if middle <= GOAL else 'missed'}"
        spread = f"{middle:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
        print(f"| {name} | {low:,.0f} | {high:,.0f} | {spread} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
