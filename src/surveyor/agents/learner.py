"""Options that agents with gradient steps share."""

from typing import Any

import equinox as eqx

from surveyor.agents.base import Agent, Index, State
from surveyor.agents.options import Count, Positive, Rule, Share, Size, option
from surveyor.models.deep_q import DeepQ
from surveyor.models.losses import Penalty
from surveyor.models.optimiser import Adam
from surveyor.models.own import Own
from surveyor.models.q import QModel
from surveyor.models.tables import RowAdam
from surveyor.models.tabular_q import TabularQ
from surveyor.models.torsos import TorsoName
from surveyor.replay.strategies import strategy
from surveyor.types import PRNG, EnvSpec, Schedule

NAMED = Rule(lambda agent: isinstance(agent.torso, str), "a torso by name")


class Learner(Agent[State, Index]):
    """Options of temporal difference learning, on tables and on networks.

    Defaults are those of the paper's tree (table 2), with γ = 1 as in its released code.
    """

    discount: Share = 1.0
    """γ: below 1 in the paper, 1 in the released tabular code."""
    learning_rate: Positive = 1e-3
    """Adam's learning rate."""
    hidden: Size = 20
    """Width of the hidden layers."""
    torso: TorsoName | Own | eqx.Module = option("auto", on="networks", converter=Own.given)
    """Network before the outputs: mlp, minatar (a small convolution first), board (one of stride 2,
    for large boards), nature (Mnih et al. 2015), or auto, which chooses by the shape of
    observations. From Python also an Equinox module that maps one observation to a vector."""
    depth: Count = option(0, on="networks", needs=NAMED)
    """Dense layers of width `hidden`; 0 for two, or for one after convolutions."""
    target_every: Size = option(1000, on="networks")
    """Gradient steps between updates of the target network."""
    max_norm: Positive = option(10.0, on="networks")
    """Norm to which longer gradients are clipped."""
    batch_size: Size = 100
    """Transitions in a batch."""
    replay_capacity: Size = 10_000
    """Transitions in the replay."""
    replay: str = "uniform"
    """Replay strategy: uniform, prioritised(α) or recent-and-best(RECENT, BEST)."""
    n_step: Size = option(1, on="steps")
    """Steps over which rewards are summed before the target bootstraps."""
    gradient_steps: Count = 10
    """Gradient steps after every episode, or after every `train_every` steps."""
    train_every: Count = option(0, on="steps")
    """Environment steps between updates."""
    warmup: Count = option(0, on="steps")
    """Environment steps of random actions before the first update."""
    envs: Size = option(1, on="steps")
    """Environments played side by side, each with an index of its own."""

    def __check_init__(self):
        super().__check_init__()  # each option alone, before those that go together
        strategy(self.replay).check(self.batch_size)

    @property
    def schedule(self) -> Schedule:
        when = (self.gradient_steps, self.train_every, self.warmup, self.envs)
        drawn = (self.batch_size, self.replay_capacity, self.replay, self.n_step, self.discount)
        return Schedule(*when, 0, *drawn)

    def tables(self, spec: EnvSpec) -> bool:
        """Return whether it learns tables: states are numbers, and no module reads them."""
        return spec.tabular and isinstance(self.torso, str)

    def adam(self, eps: float = 1e-8) -> Adam:
        """Return the optimiser of networks."""
        return Adam(self.learning_rate, eps, self.max_norm)


class QLearner(Learner[State, Index]):
    """Options of agents that learn a Q model."""

    loss: Penalty = "smooth_l1"
    """Penalty of an error: squared, or smooth-L1 (released code)."""
    duelling: bool = option(False, on="networks")
    """True for duelling heads (Wang et al. 2016): a hidden layer for the value of a state, another
    for the advantages of its actions."""
    layer_norm: bool = option(False, on="networks", needs=NAMED)
    """True to normalise every dense hidden layer (Ba et al. 2016)."""
    averaged: bool = option(False, on="networks")
    """True for a target network that is a running average of the network, over `target_every`
    gradient steps; else it is a copy that is made so often."""

    def q_model(
        self,
        spec: EnvSpec,
        key: PRNG,
        heads: int = 1,
        *,
        outputs: bool = True,
        balance: tuple[float, ...] | None = None,
    ) -> QModel:
        """Return untrained Q functions: tables for numbered states, else heads of a network.

        Without `outputs` Q starts at zero; `balance` are the weights of heads that share a network.
        """
        shape = {"heads": heads, "width": self.hidden, "outputs": outputs}
        if self.tables(spec):
            return TabularQ.create(spec, key, adam=RowAdam(self.learning_rate), **shape)
        net: dict[str, Any] = {"torso": self.torso, "depth": self.depth, "duelling": self.duelling}
        net |= {"adam": self.adam(), "target_every": self.target_every}
        net |= {"normalised": self.layer_norm, "averaged": self.averaged, "balance": balance}
        return DeepQ.create(spec, key, **net, **shape)
