"""Our Bootstrapped DQN beside bsuite's JAX one on DeepSea, in one run on one core.

    make bench-peers                                    # in an environment of its own
    python benchmarks/peers.py [--sizes 10 20 30] [--solve 20 30] [--minutes 2]

1. Episodes a second with the same ensemble, batch and updates: 20 heads with additive priors of
   weight 5, batches of 128, and an update of every head at every step of the environment. Theirs is
   `bsuite.baselines.jax.boot_dqn.default_agent` as it comes, and again with a network as small as
   ours.
2. Which of them finds and learns the way to the goal in the same time, on the same core.

Ours updates after an episode, as often as it had steps; theirs during it. Ours has one hidden layer
of 20 for one-hot states and no target network; theirs by default two of 50, and one.
"""

import argparse
import time
from collections.abc import Iterator

import haiku as hk  # pyright: ignore[reportMissingImports]
import jax
import optax
from bsuite.baselines.jax.boot_dqn import agent as boot_dqn
from bsuite.environments.deep_sea import DeepSea

import surveyor as sv
from speed import Trained  # which also keeps this process on one core

HEADS, BATCH, PRIOR, DISCOUNT, REPLAY = 20, 128, 5.0, 0.99, 10_000
GOAL = 20


def ours(size: int) -> sv.BootDQN:
    """Our agent, with bsuite's default ensemble, batch, prior and updates."""
    return sv.BootDQN(
        ensemble=HEADS,
        prior_weight=PRIOR,
        bootstrap=1.0,
        trained="all",
        discount=DISCOUNT,
        loss="squared",
        batch_size=BATCH,
        replay_capacity=REPLAY,
        gradient_steps=size,
    )


def theirs(env: DeepSea, hidden: list[int] | None, seed: int) -> boot_dqn.BootstrappedDqn:
    """Their agent: as it comes, or with hidden layers of these sizes."""
    if hidden is None:
        return boot_dqn.default_agent(env.observation_spec(), env.action_spec(), seed, HEADS)

    def network(inputs):
        x, sizes = hk.Flatten()(inputs), [*hidden, env.action_spec().num_values]
        return hk.nets.MLP(sizes)(x) + PRIOR * jax.lax.stop_gradient(hk.nets.MLP(sizes)(x))

    return boot_dqn.BootstrappedDqn(
        env.observation_spec(), env.action_spec(), network, HEADS, BATCH, DISCOUNT, REPLAY,
        min_replay_size=BATCH, sgd_period=1, target_update_period=4,
        optimizer=optax.adam(1e-3), mask_prob=1.0, noise_scale=0.0, seed=seed,
    )  # fmt: skip


def their_episodes(env: DeepSea, agent: boot_dqn.BootstrappedDqn) -> Iterator[tuple[float, float]]:
    """Return and seconds of one training episode after another."""
    while True:
        began, step, total = time.perf_counter(), env.reset(), 0.0
        while not step.last():
            action = agent.select_action(step)
            new = env.step(action)
            agent.update(step, action, new)
            step, total = new, total + new.reward
        yield total, time.perf_counter() - began


def their_seconds(size: int, hidden: list[int] | None, episodes: int = 6) -> float:
    """Best time of an episode, once the replay is large enough for updates."""
    env = DeepSea(size, randomize_actions=True, mapping_seed=0)
    running = their_episodes(env, theirs(env, hidden, seed=0))
    for _ in range(BATCH // size + 2):  # until their updates have begun and are compiled
        next(running)
    return min(next(running)[1] for _ in range(episodes))


def speed(size: int) -> None:
    """Episodes a second, at one size."""
    mine = Trained(size, ours(size)).episode(10)
    print(f"\nDeepSea-{size}: {HEADS} heads, batch {BATCH}, {size} updates of all heads an episode")
    print(f"  surveyor                       {1 / mine:8.2f} episodes a second")
    for name, hidden in (("bsuite, as it comes", None), ("bsuite, one hidden layer of 20", [20])):
        peer = their_seconds(size, hidden)
        goal = f" (goal: at least {GOAL})" if hidden is None else ""
        print(
            f"  {name:30s} {1 / peer:8.2f} episodes a second: {peer / mine:.1f} times slower{goal}",
            flush=True,
        )


def learning(size: int, minutes: float) -> None:
    """Who learns the way to the goal in so many minutes."""
    env = DeepSea(size, randomize_actions=True, mapping_seed=0)
    running, returns, began = their_episodes(env, theirs(env, None, seed=0)), [], time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        returns.append(next(running)[0])
    successes = [i + 1 for i, total in enumerate(returns) if total > 0.5]
    first = f"the first at {successes[0]}" if successes else "no success"
    lately = sum(total > 0.5 for total in returns[-50:])
    print(f"\nDeepSea-{size} in {minutes:g} minutes")
    print(f"  bsuite     {len(returns)} episodes, {first}, {lately} of the last 50 successes")
    episodes = int(60 * minutes / Trained(size, ours(size)).episode(10))
    run = sv.train(ours(size), f"Chain-{size}", seed=0, episodes=episodes)
    end = f"solved at {run.solved_at} after {run.seconds:.0f} s" if run.solved_at else "not solved"
    print(f"  surveyor   {run.result['episodes']} of {episodes} episodes, {end}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 30])
    parser.add_argument("--solve", type=int, nargs="*", default=[20, 30])
    parser.add_argument("--minutes", type=float, default=2.0, help="of theirs, for each --solve")
    options = parser.parse_args()
    for size in options.sizes:
        speed(size)
    for size in options.solve:
        learning(size, options.minutes)


if __name__ == "__main__":
    main()
