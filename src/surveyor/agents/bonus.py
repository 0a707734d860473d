"""DQN with an exploration bonus: counts on tables, random network distillation on networks."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from surveyor.agents.dqn import DQN, DQNState
from surveyor.agents.options import NonNegative, Probability
from surveyor.models.novelty import Counts, Distillation, NoveltyModel
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Transition, Update


class BonusState(DQNState):
    """The state of DQN, and a measure of novelty."""

    novelty: NoveltyModel


class BonusDQN(DQN):
    """Double DQN that learns from the reward plus a bonus for what is new.

    The bonus of a transition is worked out anew whenever it is drawn: 1/√n(s, a) for numbered
    states (Strehl and Littman 2008), else the error of random network distillation (Burda et al.
    2018). Evaluations are greedy on the same Q values, which keep what is left of the bonus.
    """

    bonus: NonNegative = 0.1
    """Factor on the bonus."""
    double: bool = True
    epsilon_end: Probability = 0.01
    """ε in the end."""

    def init(self, spec: EnvSpec, key: PRNG) -> BonusState:
        """Return an untrained network and a measure of novelty that has seen nothing."""
        dqn_key, novelty_key = jax.random.split(key)
        dqn = super().init(spec, dqn_key)
        if spec.tabular:
            return BonusState(dqn.network, dqn.steps, Counts.create(spec))
        net: dict[str, Any] = {"hidden": self.hidden, "torso": self.torso, "depth": self.depth}
        novelty = Distillation.create(spec, novelty_key, adam=self.adam(), **net)
        return BonusState(dqn.network, dqn.steps, novelty)

    def observe(self, state: Any, transitions: Transition, mask: Mask) -> BonusState:
        """Count the steps, and the visits of numbered states."""
        dqn = super().observe(state, transitions, mask)
        return BonusState(dqn.network, dqn.steps, state.novelty.observe(transitions, mask))

    def learn(self, state: Any, batch: Batch, key: PRNG) -> tuple[BonusState, Update]:
        """Take a step of DQN on reward and bonus, and one of the distillation."""
        bonus = state.novelty.bonus(batch)
        paid = dataclasses.replace(batch, reward=batch.reward + self.bonus * bonus)
        dqn, update = super().learn(state, paid, key)
        metrics = {**update.metrics, "bonus": jnp.mean(bonus)}
        learnt = BonusState(dqn.network, dqn.steps, state.novelty.fit(batch))
        return learnt, Update(metrics, update.errors)
