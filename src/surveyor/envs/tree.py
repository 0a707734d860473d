"""The binary tree of the paper's figure 1, with independent or tied actions."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from surveyor.envs.base import Environment, Layout, Params
from surveyor.envs.paper_problems import tree_episodes, tree_states
from surveyor.types import EnvSpec


class Tree(Environment):
    """L steps UP in a row earn a reward of one; a single DOWN ends the episode with nothing.

    States s_0 … s_2L as in figure 1: from an even s_k, UP leads to s_{k+2} and DOWN to s_{k+1};
    odd states and s_2L are terminal. With `tied` actions UP is the same action in every state
    (section 5.3), otherwise its meaning is drawn independently for each state.
    """

    size: int = eqx.field(static=True)
    """Number L of steps to the goal."""
    tied: bool = eqx.field(static=True, default=False)
    """True if UP is the same action in every state."""

    @property
    def name(self):
        return f"{'TiedTree' if self.tied else 'Tree'}-{self.size}"

    @property
    def spec(self):
        return EnvSpec(num_states=tree_states(self.size), num_actions=2, horizon=self.size)

    @property
    def optimal_return(self):
        return 1.0

    @property
    def default_episodes(self):
        return tree_episodes(self.size)

    def params(self, seed):
        draws = np.random.RandomState(seed).binomial(1, 0.5, 1 if self.tied else self.size)
        return Params(jnp.asarray(np.broadcast_to(draws, self.size), jnp.uint8))

    def layout(self, side):
        path = 2 * np.arange(self.size)
        shown = path[:: -(-self.size // side**2)]
        return Layout(shown, *self.place(shown), path, ("UP", "DOWN"))

    def place(self, states):
        return np.zeros_like(states), states // 2

    def good(self, params, states):
        return params.mapping[states // 2].astype(jnp.int32)

    def step_env(self, key, state, action, params):
        up = action == self.good(params, state)
        state = jnp.where(up, state + 2, state + 1)
        goal = state == 2 * self.size
        return state, state, goal.astype(jnp.float32), goal | ~up, {}
