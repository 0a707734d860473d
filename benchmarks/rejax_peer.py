# pyright: reportMissingImports=false
"""DQN and SU+ beside Rejax's compiled DQN on MinAtar Breakout.

    make bench-peers                                    # in environments of their own
    python benchmarks/rejax_peer.py [--steps 100000] [--repeats 3] [--rejax .venv-rejax/bin/python]

Steps per second on one core each, with two hidden layers of 128, and with 16 filters of 3 × 3 and a
hidden layer of 128: 8 environments, 2 updates of batch 32 for every 8 steps, one-step double DQN,
and a target network that follows every 1000 updates. Neither evaluates, and compilation is left
out: Rejax's `train` is compiled ahead of time, without its evaluations, and called on the state
that a shorter call left, when its updates had begun. Both run under the XLA flags that surveyor
sets, with the same version of JAX.

Both have replays of the same capacity: 100,000, as in our preset, and 10,000. Rejax draws a batch
without replacement and scores every place of its replay for that, so that its speed depends on the
capacity.

Rejax 0.1.3 needs gymnax below 1, and so an environment of its own.

Every measurement has a process of its own on the same core; they take turns, and the best counts.
"""

import dataclasses
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Figures, Part, arguments, ratio, run, shown, speed

AGENTS = {"dqn": 2.5, "su-plus": 1.0}
"""Agents of ours, with the least ratio of their speed to the peer's."""
NETWORKS = {"mlp": "two layers of 128", "minatar": "16 filters and a layer of 128"}
"""Torsos by our name for them."""
ENVS, UPDATES, BATCH, HIDDEN, WARMUP, TARGET_EVERY = 8, 2, 32, 128, 1_000, 1_000
CAPACITIES = (100_000, 10_000)


def ours(name: str, torso: str, capacity: int, steps: int) -> float:
    """Return the steps per second of an agent of ours."""
    import surveyor as sv

    equal: dict[str, Any] = (
        {"torso": torso, "hidden": HIDDEN, "depth": 0, "n_step": 1, "target_every": TARGET_EVERY}
        | {"batch_size": BATCH, "replay_capacity": capacity, "warmup": WARMUP}
        | {"envs": ENVS, "train_every": ENVS, "gradient_steps": UPDATES}
        | ({"double": True} if name == "dqn" else {})
    )
    agent = dataclasses.replace(sv.agents.preset(name, "minatar"), **equal)
    return speed(agent, "MinAtar/Breakout", steps, after=2 * WARMUP)


def rejax(torso: str, capacity: int, steps: int) -> float:
    """Return the steps per second of Rejax's DQN."""
    import jax
    from flax import linen as nn
    from rejax import DQN
    from rejax.networks import DiscreteQNetwork, EpsilonGreedyPolicy

    warnings.simplefilter("ignore")  # of this gymnax about this JAX

    class Convolution(DiscreteQNetwork):
        """16 filters before the dense layers."""

        @nn.compact
        def __call__(self, obs):
            x = nn.relu(nn.Conv(16, (3, 3), padding="VALID")(obs))
            x = x.reshape(len(x), -1)
            for size in self.hidden_layer_sizes:
                x = nn.relu(nn.Dense(size)(x))
            return nn.Dense(self.action_dim)(x)

    def algorithm(count: int) -> Any:
        made: Any = DQN.create(
            env="Breakout-MinAtar", num_envs=ENVS, num_epochs=UPDATES, batch_size=BATCH,
            buffer_size=capacity, fill_buffer=WARMUP, ddqn=True, polyak=0.0, max_grad_norm=10.0,
            target_update_freq=TARGET_EVERY * ENVS // UPDATES, learning_rate=2.5e-4,
            total_timesteps=count, eval_freq=count, skip_initial_evaluation=True,
        )  # fmt: skip
        kind, widths = (
            (DiscreteQNetwork, (HIDDEN, HIDDEN)) if torso == "mlp" else (Convolution, (HIDDEN,))
        )
        agent = EpsilonGreedyPolicy(kind)(widths, nn.relu, made.env.num_actions)
        return made.replace(agent=agent, eval_callback=lambda *_: 0)

    first, timed = algorithm(2 * WARMUP), algorithm(steps)
    # Its state is of a class that is made at run time: this one serves both.
    state = first.init_state(jax.random.key(0))
    state, _ = jax.jit(lambda state: first.train(train_state=state))(state)
    train = jax.jit(lambda state: timed.train(train_state=state)).lower(state).compile()
    before, began = int(state.global_step), time.perf_counter()
    state, _ = jax.block_until_ready(train(state))
    return (int(state.global_step) - before) / (time.perf_counter() - began)


def parts(python: str) -> dict[str, Part]:
    """Return every measurement, called by its network, capacity and agent."""
    found: dict[str, Part] = {}
    for torso in NETWORKS:
        for capacity in CAPACITIES:
            name = f"{torso} {capacity}"
            found[f"{name} rejax"] = Part(partial(rejax, torso, capacity), python=python)
            for agent in AGENTS:
                found[f"{name} {agent}"] = Part(partial(ours, agent, torso, capacity))
    return found


def report(found: Figures) -> None:
    """Print the table."""
    print("| network | replay | agent | steps/s | Rejax's DQN | ratio | target |")
    print("|---|---:|---|---:|---:|---:|---|")
    for torso, network in NETWORKS.items():
        for capacity in CAPACITIES:
            peer = found[f"{torso} {capacity} rejax"]
            for agent, goal in AGENTS.items():
                values = found[f"{torso} {capacity} {agent}"]
                cells = f"{shown(values)} | {shown(peer)} | {ratio(max(values) / max(peer), goal)}"
                print(f"| {network} | {capacity:,} | {agent} | {cells} |")


def main() -> None:
    parser = arguments(__doc__, 100_000, "of each agent")
    python = Path(__file__).parent.parent / ".venv-rejax/bin/python"
    parser.add_argument("--rejax", default=str(python), help="Python that has Rejax")
    options = parser.parse_args()
    if options.part is None:
        import surveyor as surveyor  # sets XLA's flags, which all processes inherit
    if (found := run(__file__, parts(options.rejax), options)) is not None:
        report(found)


if __name__ == "__main__":
    main()
