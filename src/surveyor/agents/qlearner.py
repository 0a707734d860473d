"""What agents that learn a Q network have in common."""

from jaxtyping import Array, Key

from surveyor.agents.learner import ATARI, CLASSIC, MINATAR, Learner
from surveyor.models.qnetwork import DeepQ, TabularQ
from surveyor.types import EnvSpec


class QLearner(Learner):
    """The hyperparameters of Q learning.

    Defaults are those of the paper's tree (table 2), with γ = 1 as in its released code.
    """

    batch_size: int = 100
    """Transitions in a gradient step."""
    replay_capacity: int = 10_000
    """Transitions remembered."""
    gradient_steps: int = 10
    """Gradient steps after every episode, or after every `train_every` steps."""

    @classmethod
    def minatar(cls) -> "QLearner":
        """For MinAtar: ours, after Young and Tian (2019)."""
        return cls(**MINATAR)

    @classmethod
    def atari(cls) -> "QLearner":
        """For Atari: what the paper's table 4 has for SU, where it applies."""
        return cls(**ATARI)

    @classmethod
    def classic(cls) -> "QLearner":
        """For small problems with vectors as observations: ours."""
        return cls(**CLASSIC)

    @classmethod
    def numbered(cls) -> "QLearner":
        """For Gymnasium environments with numbered states: ours. On tables, which have no target
        network, a wide hidden layer lets Q run away."""
        return cls(**{**CLASSIC, "hidden": 20})

    def _q_network(
        self, spec: EnvSpec, key: Key[Array, ""], heads: int = 1, *, outputs: bool = True
    ) -> TabularQ | DeepQ:
        """So many Q networks: tables where states are numbers, else heads of one network."""
        if spec.tabular:
            shape = (heads, self.hidden, self.learning_rate)
            return TabularQ.create(spec, key, *shape, outputs=outputs)
        shape = (heads, self.hidden, self.torso, self._deep_adam())
        return DeepQ.create(spec, key, *shape, outputs=outputs)
