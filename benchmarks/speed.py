"""The speed claims, measured in one run on one core and printed as ratios.

    python benchmarks/speed.py            # about four minutes

1. A gradient step costs the same however many states there are: Chain-320 against Chain-20.
2. The compiled loop against the same agent driven from Python, on Chain-100.
3. Peak memory of a run on Chain-160, and that Chain-320 runs.

Times are the best of several repeats of a whole training chunk: acting, replay, posterior, gradient
steps and greedy tests, everything included. Compilation is not.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before JAX counts them

import jax
import jax.numpy as jnp
import numpy as np

import surveyor as sv
from surveyor.training import episodes as compiled
from surveyor.types import Batch

AGENT = sv.SUPlus.preset("chain")  # batch 100, ten samples, 100 gradient steps an episode
RECENT = 10
"""Transitions of a batch from the newest episode."""


class Trained:
    """A run on a chain that has come some way, ready to be timed."""

    def __init__(self, size: int, agent: sv.Agent = AGENT):
        self.agent = agent
        self.env, self.params = sv.envs.make(f"Chain-{size}")
        init_key, self.key = jax.random.split(jax.random.key(0))
        self.loop = compiled.start(agent, self.env, init_key)
        self.program = compiled.compile_chunk(agent, self.env, stop_when_solved=False)
        self.advance(10)

    def advance(self, intervals: int) -> float:
        """Return the seconds for this many intervals of ten episodes."""
        began = time.perf_counter()
        self.loop, _, _ = jax.block_until_ready(
            self.program(self.loop, self.params, self.key, np.int32(10**9), np.int32(intervals))
        )
        return time.perf_counter() - began

    def episode(self, repeats: int) -> float:
        """Return the best time of an episode in seconds, everything included."""
        return min(self.advance(1) for _ in range(repeats)) / compiled.TEST_EVERY

    def microseconds(self, repeats: int) -> float:
        """Return the best time of a gradient step, everything included."""
        return self.episode(repeats) / self.agent.schedule.updates * 1e6


def flat_cost() -> None:
    small, large = Trained(20), Trained(320)
    # Turn and turn about, so that a slow moment of the machine hits both.
    pairs = [(small.microseconds(5), large.microseconds(5)) for _ in range(8)]
    a, b = (min(pair[i] for pair in pairs) for i in range(2))
    print(f"gradient step, Chain-20                 {a:8.1f} µs (goal: at most 100)")
    print(f"gradient step, Chain-320                {b:8.1f} µs")
    print(
        f"Chain-320 / Chain-20                    {b / a:8.2f}    (goal: at most 1.3)", flush=True
    )


class Memory:
    """The replay that a careful user would write: NumPy arrays."""

    def __init__(self, capacity: int):
        self.columns = [np.zeros(capacity, kind) for kind in (int, int, np.float32, int, bool)]
        self.capacity, self.written = capacity, 0

    def add(self, *step: Any) -> None:
        for column, x in zip(self.columns, step, strict=True):
            column[self.written % self.capacity] = x
        self.written += 1

    def read(self, where: np.ndarray) -> Batch:
        obs, action, reward, next_obs, terminated = (column[where] for column in self.columns)
        obs, action, next_obs = (np.asarray(x, np.int32) for x in (obs, action, next_obs))
        number = jnp.asarray(where.astype(np.int32))
        step = [jnp.asarray(x) for x in (obs, action, reward, next_obs, terminated)]
        return Batch(step[0], step[1], step[2], step[3], step[4], number)


def python_loop(episodes: int, size: int) -> float:
    """Return seconds per episode for the same agent as a careful user would drive it.

    That is: jitted `act` and `learn` with donated buffers, and a replay of NumPy arrays.
    """
    env, params = sv.envs.make(f"Chain-{size}")
    key = jax.random.key(0)
    state = AGENT.init(env.spec, key)
    step_env, act = jax.jit(env.step_env), jax.jit(AGENT.act)
    learn = jax.jit(AGENT.learn, donate_argnums=0)
    observe = jax.jit(AGENT.observe, donate_argnums=0)
    rng = np.random.default_rng(0)
    memory, took = Memory(AGENT.replay_capacity), []
    for _ in range(episodes):
        began, first, done = time.perf_counter(), memory.written, False
        key, sample_key = jax.random.split(key)
        index = AGENT.sample(state, sample_key)
        obs, env_state = env.reset(key, params)
        while not done:
            action = act(state, index, obs, rng.random(2, np.float32))
            last, env_state, reward, terminated, _ = step_env(key, env_state, action, params)
            memory.add(obs, action, reward, last, terminated)
            obs, done = last, bool(terminated)
        new = memory.read(np.arange(first, memory.written))
        state = observe(state, new, np.ones(memory.written - first, bool))
        for _ in range(AGENT.gradient_steps):
            recent = rng.integers(first, memory.written, RECENT)
            old = rng.integers(0, memory.written, AGENT.batch_size - RECENT)
            key, target_key = jax.random.split(key)
            batch = memory.read(np.concatenate([recent, old]))
            state, _ = learn(state, batch, target_key)
        jax.block_until_ready(state)
        took.append(time.perf_counter() - began)
    return min(took[2:])


def against_python(size: int) -> None:
    ours = Trained(size).episode(10)
    theirs = python_loop(8, size)
    print(f"an episode of Chain-{size}, compiled loop   {ours * 1e3:8.2f} ms")
    print(f"the same from Python                    {theirs * 1e3:8.2f} ms")
    print(
        f"Python / compiled                       {theirs / ours:8.1f}    (goal: at least 10)",
        flush=True,
    )


def memory(size: int, goal: float | None) -> None:
    """Print the peak memory of a process that trains for a while, checkpoints included."""
    command = [sys.executable, __file__, "--run", str(size)]
    peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    said = "" if goal is None else f"    (goal: at most {goal:g})"
    print(f"peak memory of a run on Chain-{size}        {peak:8.2f} GB{said}", flush=True)


def run_and_report_memory(size: int) -> None:
    with tempfile.TemporaryDirectory() as out:
        sv.train("su-plus", f"Chain-{size}", episodes=100, out=out)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed claims, as ratios.")
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_and_report_memory(options.run)
        return
    flat_cost()
    against_python(100)
    memory(160, 1.0)
    memory(320, None)


if __name__ == "__main__":
    main()
