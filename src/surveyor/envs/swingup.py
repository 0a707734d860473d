"""The cart-pole swing-up of bsuite (Osband et al. 2020), in JAX."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from surveyor.envs.stepping import Box, Discrete, Step, restarted
from surveyor.types import PRNG

MASS, POLE_MASS, LENGTH, FORCE, GRAVITY = 1.0, 0.1, 0.5, 10.0, 9.8
SECONDS, LONGEST, EDGE = 0.01, 10.0, 3.0
"""Length of a step, of an episode, and of the track on either side."""
MOVE_COST, SLOW, SHAKE = 0.1, 1.0, 0.05
STEPS = int(np.sum(np.cumsum(np.full(1_100, SECONDS)) <= LONGEST)) + 1
"""Steps of the longest episode, by the clock that bsuite adds up."""


class Cart(NamedTuple):
    """Where the cart and the pole are."""

    x: Float[Array, ""]
    x_dot: Float[Array, ""]
    theta: Float[Array, ""]
    theta_dot: Float[Array, ""]
    time: Int[Array, ""]
    """Steps since the episode began."""


@dataclasses.dataclass(frozen=True)
class SwingUp:
    """A pole that hangs down from a cart and has to be swung up and balanced.

    Pushing left or right costs 0.1. A step earns 1 if the pole is upright enough, slow, and the
    cart in the middle. An episode ends after ten seconds, a thousand steps, or at the end of the
    track. The hard settings of bsuite have a large `height` and a small `middle`.
    """

    height: float = 0.5
    """Least cosine of the pole's angle that earns."""
    middle: float = 1.0
    """Largest distance of the cart from the middle that earns."""

    default_params = None

    @property
    def name(self) -> str:
        """Name of the environment."""
        return f"SwingUp({self.height:g}, {self.middle:g})"

    def action_space(self, params: None = None) -> Discrete:
        """Return left, stay and right."""
        return Discrete(3)

    def observation_space(self, params: None = None) -> Box:
        """Return the bounds of an observation, which are infinite."""
        return Box(-np.inf, np.inf, (8,), jnp.float32)

    def reset(self, key: PRNG, params: None = None) -> tuple[Float[Array, "8"], Cart]:
        """Start near the middle, with the pole down."""
        x, x_dot, theta, theta_dot = jax.random.uniform(key, (4,), minval=-SHAKE, maxval=SHAKE)
        cart = Cart(x, x_dot, jnp.pi + theta, theta_dot, jnp.zeros((), jnp.int32))
        return self.observe(cart), cart

    def step(self, key: PRNG, state: Cart, action: Any, params: None = None) -> Step:
        """Take one step in gymnax 1.x's convention."""
        last = moved(state, action)
        up = (jnp.cos(last.theta) > self.height) & (jnp.abs(last.theta_dot) < SLOW)
        up &= jnp.abs(last.x) < self.middle
        reward = up - MOVE_COST * jnp.abs(action - 1)
        over = (last.time >= STEPS) | (jnp.abs(last.x) > EDGE)
        final = self.observe(last)
        obs, state = restarted(over, self.reset(key, params), (final, last))
        return obs, state, reward, over, jnp.zeros_like(over), {"final_observation": final}

    def observe(self, cart: Cart) -> Float[Array, "8"]:
        """Return what bsuite shows of it."""
        central = jnp.where(jnp.abs(cart.x) < self.middle, 1.0, -1.0)
        slow = jnp.where(jnp.abs(cart.theta_dot) < SLOW, 1.0, -1.0)
        angle = (jnp.sin(cart.theta), jnp.cos(cart.theta), cart.theta_dot)
        time = cart.time * jnp.float32(SECONDS / LONGEST)
        return jnp.stack([cart.x / EDGE, cart.x_dot / EDGE, *angle, time, central, slow])


def moved(cart: Cart, action: Int[Array, ""]) -> Cart:
    """Return where cart and pole are a step later."""
    cos, sin, total = jnp.cos(cart.theta), jnp.sin(cart.theta), MASS + POLE_MASS
    lever = POLE_MASS * LENGTH
    push = ((action - 1) * FORCE + lever * cart.theta_dot**2 * sin) / total
    inertia = LENGTH * (4 / 3 - POLE_MASS * cos**2 / total)
    theta_acc = (GRAVITY * sin - cos * push) / inertia
    x_acc = push - lever * theta_acc * cos / total
    return Cart(
        cart.x + SECONDS * cart.x_dot,
        cart.x_dot + SECONDS * x_acc,
        jnp.remainder(cart.theta + SECONDS * cart.theta_dot, 2 * jnp.pi),
        cart.theta_dot + SECONDS * theta_acc,
        cart.time + 1,
    )
