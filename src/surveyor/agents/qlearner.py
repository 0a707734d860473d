"""What agents that learn a Q network have in common."""

from surveyor.agents import check
from surveyor.agents.base import Agent
from surveyor.losses import Penalty


class QLearner(Agent):
    """The hyperparameters of Q learning with a network of one hidden layer.

    Defaults are those of the paper's tree (table 2), with γ = 1 as in its released code.
    """

    hidden: int = 20
    """Width of the hidden layer."""
    discount: float = 1.0
    """γ: below 1 in the paper, 1 in the released tabular code."""
    loss: Penalty = "smooth_l1"
    """How an error counts: squared, or smooth-l1 (released code)."""
    learning_rate: float = 1e-3
    """Adam's, for everything."""
    batch_size: int = 100
    """Transitions in a gradient step."""
    replay_capacity: int = 10_000
    """Transitions remembered."""
    gradient_steps: int = 10
    """Gradient steps after every episode."""

    def __check_init__(self):
        check.positive(self, "learning_rate")
        check.share(self, "discount")
        check.at_least(self, 1, "hidden")
