"""Networks of one's own: a convolution, and a network with the weights of another library.

    python examples/my_network.py

A torso maps one observation to a vector; the agent puts its own outputs on it and trains it all.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

import surveyor as sv


class MyCNN(eqx.Module):
    """Two convolutions and a dense layer, for the 10 × 10 pictures of MinAtar."""

    convolutions: tuple[eqx.nn.Conv2d, eqx.nn.Conv2d]
    layer: eqx.nn.Linear

    def __init__(self, channels: int, width: int, key: Array):
        first, second, third = jax.random.split(key, 3)
        self.convolutions = (
            eqx.nn.Conv2d(channels, 16, 3, key=first),
            eqx.nn.Conv2d(16, 16, 3, key=second),
        )
        self.layer = eqx.nn.Linear(16 * 6 * 6, width, key=third)

    def __call__(self, obs: Float[Array, "10 10 channels"]) -> Float[Array, " width"]:
        x = jnp.moveaxis(obs, -1, 0)
        for convolution in self.convolutions:
            x = jax.nn.relu(convolution(x))
        return jax.nn.relu(self.layer(x.reshape(-1)))


class Borrowed(eqx.Module):
    """A network of another library as a function of its weights, which are trained from there."""

    weights: PyTree
    apply: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, obs: Float[Array, "..."]) -> Float[Array, " width"]:
        return self.apply(self.weights, obs)


def from_flax() -> Borrowed:
    """Return an MLP of Flax with its weights; those of a PyTorch model are NumPy arrays as well."""
    from flax import linen

    mlp = linen.Sequential([jnp.ravel, linen.Dense(64), linen.relu, linen.Dense(64), linen.relu])
    return Borrowed(mlp.init(jax.random.key(0), jnp.zeros((10, 10, 4))), mlp.apply)


if __name__ == "__main__":
    options = {"discount": 0.99, "batch_size": 32, "train_every": 4, "gradient_steps": 1}
    options |= {"warmup": 1_000, "envs": 8, "replay_capacity": 20_000}
    for torso in (MyCNN(4, 64, jax.random.key(0)), from_flax()):
        agent = sv.SUPlus(torso=torso, **options)
        run = sv.train(agent, "MinAtar/Breakout", steps=5_000)
        print(f"{type(torso).__name__}: mean return {sv.evaluate(run).mean_return:.1f}")
