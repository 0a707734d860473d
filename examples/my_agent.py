"""An agent of one's own, complete: Q-learning with a bonus for rare actions, on numbered states.

    python examples/my_agent.py
    surveyor train Tree-10 --agent my-agent --import examples/my_agent.py

Nothing has to be registered: the class MyAgent is called my-agent.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

import surveyor as sv
from surveyor.agents.options import Positive, Share, Size
from surveyor.types import PRNG, Mask, Obs


class MyState(eqx.Module):
    """Everything that the agent has learnt; every leaf is an array."""

    tables: Float[Array, "2 states actions"]
    """Q without bonus, and with it."""
    visits: Int[Array, "states actions"]


class MyAgent(sv.Agent[MyState, Int[Array, ""]]):
    """Q-learning with a bonus of `bonus` / √visits on every reward; the index is a table."""

    rate: Share = 0.2
    """Learning rate."""
    bonus: Positive = 0.1
    """Bonus of an action that was tried once."""
    discount: Share = 1.0
    """Discount factor γ."""
    updates: Size = 50
    """Updates after each episode, or after every 10 steps."""

    @property
    def schedule(self) -> sv.Schedule:
        """Learn from batches of 32."""
        return sv.Schedule(updates=self.updates, every=10, batch_size=32, capacity=10_000)

    def init(self, spec: sv.EnvSpec, key: PRNG) -> MyState:
        """Return tables of 0, and of 1 where the bonus makes optimistic."""
        if not spec.tabular:
            raise sv.SurveyorError("MyAgent needs an environment with numbered states.")
        table = jnp.zeros((spec.num_states, spec.num_actions))
        return MyState(jnp.stack([table, table + 1]), table.astype(jnp.int32))

    def sample(self, state: MyState, key: PRNG) -> Int[Array, ""]:
        """Explore with the optimistic table."""
        return jnp.ones((), jnp.int32)

    def greedy(self, state: MyState) -> Int[Array, ""]:
        """Evaluate with the table without bonus."""
        return jnp.zeros((), jnp.int32)

    def q(self, state: MyState, index: Int[Array, ""], obs: Obs) -> Float[Array, "*b actions"]:
        """Look up a table."""
        return state.tables[index, obs]

    def observe(self, state: MyState, transitions: sv.Transition, mask: Mask) -> MyState:
        """Count the visits."""
        visits = state.visits.at[transitions.obs, transitions.action].add(mask.astype(jnp.int32))
        return MyState(state.tables, visits)

    def learn(self, state: MyState, batch: sv.Batch, key: PRNG) -> tuple[MyState, sv.Update]:
        """Move the tables towards the targets, one transition after the other."""

        def step(tables, t):
            bonus = self.bonus / jnp.sqrt(jnp.maximum(state.visits[t.obs, t.action], 1))
            following = jnp.max(tables[:, t.next_obs], axis=-1) * ~t.terminated
            target = t.reward + jnp.stack([0.0 * bonus, bonus]) + self.discount * following
            error = target - tables[:, t.obs, t.action]
            return tables.at[:, t.obs, t.action].add(self.rate * error), error[0] ** 2

        tables, squared = jax.lax.scan(step, state.tables, batch)
        return MyState(tables, state.visits), sv.Update({"q_loss": jnp.mean(squared)})


if __name__ == "__main__":
    run = sv.train(MyAgent(), "Tree-10")
    print(f"Tree-10 solved at episode {run.solved_at}")
