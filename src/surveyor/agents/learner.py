"""What agents that learn by gradients have in common."""

from typing import Any

from surveyor.agents import check
from surveyor.agents.base import Agent
from surveyor.models.deep import DeepAdam, TorsoName
from surveyor.models.losses import Penalty

MINATAR: dict[str, Any] = {
    "discount": 0.99,
    "learning_rate": 2.5e-4,
    "hidden": 128,
    "target_every": 1_000,
    "batch_size": 32,
    "replay_capacity": 100_000,
    "train_every": 4,
    "gradient_steps": 1,
    "warmup": 5_000,
    "envs": 8,
}
"""For MinAtar: network, batch and replay of Young and Tian (2019). Ours: Adam, eight environments,
and an update for every four steps, where theirs has one for each."""

ATARI: dict[str, Any] = {
    "discount": 0.99,
    "learning_rate": 5e-5,
    "hidden": 1024,
    "target_every": 2_500,
    "max_norm": 10.0,
    "batch_size": 32,
    "replay_capacity": 1_000_000,
    "train_every": 4,
    "gradient_steps": 1,
    "warmup": 100_000,
}
"""For Atari: the paper's table 4; discount, replay and random steps as in its released code. The
target network follows every 10,000 steps of the environment, which are 2,500 gradient steps."""

CLASSIC: dict[str, Any] = {
    "discount": 0.99,
    "learning_rate": 1e-3,
    "hidden": 128,
    "target_every": 100,
    "batch_size": 64,
    "replay_capacity": 50_000,
    "train_every": 4,
    "gradient_steps": 2,
    "warmup": 1_000,
    "envs": 4,
}
"""For small problems with vectors as observations, such as MountainCar: ours."""


class Learner(Agent):
    """Hyperparameters of temporal difference learning, on tables and on networks."""

    discount: float = 1.0
    """γ: below 1 in the paper, 1 in the released tabular code."""
    loss: Penalty = "smooth_l1"
    """How an error counts: squared, or smooth-l1 (released code)."""
    learning_rate: float = 1e-3
    """Adam's, for everything."""
    hidden: int = 20
    """Width of the hidden layer. (SU on tables has none.)"""
    torso: TorsoName = "auto"
    """What comes before it: auto, mlp (a layer as wide), minatar (a small convolution) or nature
    (that of Mnih et al. 2015). This and the next two matter only where states are not numbers."""
    target_every: int = 1000
    """Gradient steps after which the target network is made equal to the one that learns."""
    max_norm: float = 10.0
    """Longer gradients are shortened to this norm."""

    def __check_init__(self):
        check.positive(self, "learning_rate", "max_norm")
        check.share(self, "discount")
        check.at_least(self, 1, "hidden", "target_every")

    def _deep_adam(self, eps: float = 1e-8) -> DeepAdam:
        return DeepAdam(self.learning_rate, eps, self.max_norm, self.target_every)
