# pyright: reportMissingImports=false
"""DQN and SU+ beside Stable-Baselines3's DQN on Gymnasium environments that step in Python.

    make bench-peers                                    # in an environment of its own
    python benchmarks/host_peers.py [--steps 10000] [--repeats 3] [--envs CartPole-v1 DeepSea-20]

1. Steps per second on one core, with the same environments, four side by side, and the same
   learning: 2 updates of batch 64 for every 4 steps, two hidden layers of 128, one-step returns, a
   replay of 50,000 and a target network that follows every 100 updates. `dqn` is not double, as
   theirs; our preset is, and has returns over three steps. Ours also scales observations, as it
   does by default; theirs does not.
2. Where our time goes: the environment in a bare loop with random actions; acting, observing and
   writing to the replay, which is the run without updates less the environment; and drawing from
   the replay and updating, which is the rest.
3. The host runner beside the compiled one with the same agent on DeepSea-20, with the same picture
   of booleans as observation. The time of the Python environment is taken off the host runner's.

Every measurement has a process of its own on the same core; they take turns, and the best counts.
"""

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from measuring import Figures, Part, arguments, ratio, run, shown, speed, spent

AGENTS = {"dqn": 2.5, "su-plus": 2.0}
"""Agents of ours, with the least ratio of their speed to the peer's."""
COMPILED = 1.5
"""Largest ratio of a step's time in the host runner to that in the compiled one."""
ENVS, HIDDEN, BATCH, REPLAY, WARMUP, TARGET_EVERY, UPDATES = 4, 128, 64, 50_000, 1_000, 100, 2
EQUAL: dict[str, Any] = (
    {"torso": "mlp", "hidden": HIDDEN, "depth": 2, "target_every": TARGET_EVERY}
    | {"batch_size": BATCH, "replay_capacity": REPLAY, "n_step": 1}
    | {"envs": ENVS, "train_every": ENVS, "gradient_steps": UPDATES, "warmup": WARMUP}
)
ACTING = {"gradient_steps": 0, "warmup": 0}
"""Options of a run that acts by its network and never updates it."""
SEA = "DeepSea-20"


class Sea(gymnasium.Env):
    """DeepSea-20 with bsuite's mapping of seed 0: a vector that is 1 at the agent's place."""

    size = 20

    def __init__(self):
        places = (self.size, self.size)
        self.mapping = np.random.RandomState(0).binomial(1, 0.5, places).tolist()
        self.observation_space = gymnasium.spaces.Box(0, 1, (self.size**2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def _obs(self) -> np.ndarray:
        obs = np.zeros(self.size**2, np.float32)
        if self.row < self.size:
            obs[self.row * self.size + self.column] = 1
        return obs

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.row = self.column = 0
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        right, last = action == self.mapping[self.row][self.column], self.size - 1
        reward = (-0.01 / self.size if right else 0.0) + (right and self.column == last)
        self.column = min(self.column + 1, last) if right else max(self.column - 1, 0)
        self.row += 1
        return self._obs(), reward, self.row == self.size, False, {}


class Picture(Sea):
    """DeepSea-20 with a picture as observation, like our compiled DeepSea."""

    def __init__(self):
        super().__init__()
        self.observation_space = gymnasium.spaces.MultiBinary((self.size, self.size))

    def _obs(self) -> np.ndarray:
        return super()._obs().reshape(self.size, self.size).astype(bool)


def grid() -> gymnasium.Env:
    """Return MiniGrid's 7 × 7 view as a vector of 147 bytes."""
    from minigrid.wrappers import ImgObsWrapper

    view = ImgObsWrapper(gymnasium.make("MiniGrid-Empty-8x8-v0"))
    return gymnasium.wrappers.FlattenObservation(view)


MAKERS: dict[str, Callable[[], gymnasium.Env]] = {
    "CartPole-v1": partial(gymnasium.make, "CartPole-v1"),
    "MountainCar-v0": partial(gymnasium.make, "MountainCar-v0"),
    "MiniGrid-Empty-8x8": grid,
    SEA: Sea,
}


def ours(name: str, env: Any, steps: int, **options: Any) -> float:
    """Return the steps per second of an agent of ours; `options` change its settings."""
    import surveyor as sv

    equal = EQUAL | ({"double": False} if name == "dqn" else {}) | options
    agent = dataclasses.replace(sv.agents.preset(name, "classic"), **equal)
    return speed(agent, env, steps, after=2 * WARMUP)


def theirs(make: Callable[[], gymnasium.Env], steps: int) -> float:
    """Return the steps per second of Stable-Baselines3's DQN."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    from torch_peers import sb3

    return sb3(
        "MlpPolicy", DummyVecEnv([make] * ENVS), {"net_arch": [HIDDEN, HIDDEN]}, steps,
        batch_size=BATCH, buffer_size=REPLAY, learning_starts=WARMUP, learning_rate=1e-3,
        train_freq=1, gradient_steps=UPDATES,
        target_update_interval=TARGET_EVERY * ENVS // UPDATES,
    )  # fmt: skip


def alone(make: Callable[[], gymnasium.Env], steps: int) -> float:
    """Return the steps per second of the environments in a bare loop with random actions."""
    envs = [make() for _ in range(ENVS)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    space: Any = envs[0].action_space
    rows = np.random.default_rng(0).integers(space.n, size=(-(-steps // ENVS), ENVS)).tolist()
    began = time.perf_counter()
    for row in rows:
        for env, action in zip(envs, row, strict=True):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
    return len(rows) * ENVS / (time.perf_counter() - began)


def parts() -> dict[str, Part]:
    """Return every measurement, called by its environment and what is measured."""
    found: dict[str, Part] = {}
    for env, make in MAKERS.items():
        found[f"{env} environment"] = Part(partial(alone, make))
        found[f"{env} sb3"] = Part(partial(theirs, make))
        for agent in AGENTS:
            found[f"{env} {agent}"] = Part(partial(ours, agent, make))
            found[f"{env} {agent} acting"] = Part(partial(ours, agent, make, **ACTING))
    found[f"{SEA} environment picture"] = Part(partial(alone, Picture))
    for agent in AGENTS:
        found[f"{SEA} {agent} picture"] = Part(partial(ours, agent, Picture))
        found[f"{SEA} {agent} compiled"] = Part(partial(ours, agent, SEA))
    return found


def report(found: Figures, envs: list[str]) -> None:
    """Print the tables."""
    print("| environment | agent | steps/s | Stable-Baselines3 | ratio | target |")
    print("|---|---|---:|---:|---:|---|")
    best = {name: max(values) for name, values in found.items()}
    for env in envs:
        peer = f"{env} sb3"
        for agent, goal in AGENTS.items():
            name = f"{env} {agent}"
            cells = f"{shown(found[name])} | {shown(found[peer])}"
            print(f"| {env} | {agent} | {cells} | {ratio(best[name] / best[peer], goal)} |")
    print("\nWhere the time goes, µs per step\n")
    print("| environment | agent | environment | act, observe, write | draw, update | all |")
    print("|---|---|---:|---:|---:|---:|")
    micros = {name: 1e6 / value for name, value in best.items()}
    for env in envs:
        for agent in AGENTS:
            ends = [f"{env} environment", f"{env} {agent} acting", f"{env} {agent}"]
            print(f"| {env} | {agent} | {spent([micros[name] for name in ends])} |")
    if SEA not in envs:
        return
    print(f"\nThe host runner beside the compiled one on {SEA}, µs per step\n")
    print("| agent | host, without the environment | compiled | ratio | target |")
    print("|---|---:|---:|---:|---|")
    for agent in AGENTS:
        host = micros[f"{SEA} {agent} picture"] - micros[f"{SEA} environment picture"]
        compiled = micros[f"{SEA} {agent} compiled"]
        cells = ratio(host / compiled, COMPILED, most=True)
        print(f"| {agent} | {host:.0f} | {compiled:.0f} | {cells} |")


def main() -> None:
    parser = arguments(__doc__, 10_000, "of each agent and environment")
    parser.add_argument("--envs", nargs="+", default=list(MAKERS), choices=MAKERS)
    options = parser.parse_args()
    wanted = {name: p for name, p in parts().items() if name.split()[0] in options.envs}
    if (found := run(__file__, wanted, options)) is not None:
        report(found, options.envs)


if __name__ == "__main__":
    main()
