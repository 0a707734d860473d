"""A replay strategy of one's own: `newest(N)` draws from the N newest transitions alone.

python examples/newest_strategy.py
"""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp

import surveyor as sv
from surveyor.replay.strategies import Draw, Strategy, register


@dataclasses.dataclass(frozen=True)
class Newest(Strategy):
    """The newest transitions, all alike."""

    scope: ClassVar[str] = "episodes"

    count: int = 1000

    def draw(self, replay: Any, u: Any) -> Draw:
        """Return transitions drawn uniformly among the newest ones."""
        stored = jnp.minimum(jnp.minimum(replay.written, replay.capacity), int(self.count))
        return Draw(replay.written - 1 - (u * stored).astype(jnp.int32))


register("newest", Newest)

if __name__ == "__main__":
    agent = sv.DQN(replay="newest(500)")
    run = sv.train(agent, "Chain-5", episodes=500)
    print(f"Chain-5 with {agent.replay}: solved at {run.solved_at}")
