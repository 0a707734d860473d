"""What an agent does between two steps of environments that step in Python: one program."""

from typing import Any

import jax
import numpy as np

from surveyor.agents.base import Agent
from surveyor.training import steps
from surveyor.training.functional import StepLoop
from surveyor.training.steps import Learning
from surveyor.types import PRNG, EnvSpec, Transition


class Turn:
    """Compiled program that runs between two steps of the environments.

    It observes a step, learns from batches and chooses the next actions; a part that is None is
    left out. State goes in and out as a flat list of arrays: taking modules apart and
    putting them together takes longer than many a small network.
    """

    def __init__(self, agent: Agent, spec: EnvSpec, learning: Learning):
        structure = jax.tree.structure(learning)

        def turn(leaves, key, seen, batches, ahead):
            learning, errors, action = jax.tree.unflatten(structure, leaves), None, None
            apart = jax.lax.optimization_barrier  # the same bits as in programs of their own
            if seen is not None:
                learning = apart(observe(learning, key, *seen))
            if batches is not None:
                learning, errors = apart(learn(learning, key, batches))
            if ahead is not None:
                into = jax.random.fold_in(jax.random.fold_in(key, 0), learning.step)
                action = steps.act(agent, learning, spec, ahead[0], into, ahead[1])
            return jax.tree.leaves(learning), action, errors

        def learn(learning, key, batches):
            def one(learning, batch):
                into = jax.random.fold_in(jax.random.fold_in(key, 2), learning.gradient_steps)
                return steps.update(agent, learning, batch, into)

            if len(batches.action) == 1:
                return one(learning, jax.tree.map(lambda x: x[0], batches))
            return jax.lax.scan(one, learning, batches)

        def observe(learning, key, obs, action, step):
            into = jax.random.fold_in(jax.random.fold_in(key, 1), learning.step)
            transitions = Transition(obs, action, step.reward, step.final, step.terminated)
            happened = (step.score, step.ended, into, ~step.skipped)
            return steps.observe(agent, learning, transitions, *happened)

        self.structure, self.take = structure, jax.jit(turn, donate_argnums=0)


class UnderWay:
    """Training that is under way: what `StepLoop` has, in the form that is fastest to change."""

    def __init__(self, turn: Turn, loop: StepLoop, key: PRNG):
        self.turn, self.key, self.replay = turn, key, loop.replay
        self.leaves: Any = jax.tree.leaves(loop.learning)
        self.obs, self.action = loop.obs, loop.env
        # Counted here as well: asking the learner would mean waiting for it.
        self.step, self.learnt = int(loop.learning.step), int(loop.learning.gradient_steps)

    def take(self, seen: Any, batches: Any, ahead: Any) -> Any:
        """Take a turn; return the errors of its last batch."""
        after = self.turn.take(self.leaves, self.key, seen, batches, ahead)
        self.leaves, action, errors = after
        if action is not None:
            self.action = np.asarray(action)
        return errors

    @property
    def learning(self) -> Learning:
        """The state of learning."""
        return jax.tree.unflatten(self.turn.structure, self.leaves)

    @property
    def loop(self) -> StepLoop:
        """The loop to hand over."""
        return StepLoop(self.learning, self.replay, self.action, self.obs)
