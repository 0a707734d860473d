"""Exploration bonuses: counts of numbered states, random network distillation elsewhere."""

import dataclasses
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree, Shaped

from surveyor.models.layers import Dense
from surveyor.models.optimiser import Adam
from surveyor.models.own import Own
from surveyor.models.torsos import OwnTorso, Torso, TorsoName, make_torso
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Transition

Bonus = Float[Array, " b"]
LEAST = 1e-8
"""Smallest deviation that errors are divided by."""


@runtime_checkable
class NoveltyModel(Protocol):
    """A measure of how new transitions are."""

    def bonus(self, batch: Batch) -> Bonus:
        """Return the bonus of each transition, by what is known now."""
        ...

    def observe(self, transitions: Transition, mask: Mask) -> "NoveltyModel":
        """Return the model after these transitions."""
        ...

    def fit(self, batch: Batch) -> "NoveltyModel":
        """Take one gradient step, if there is anything to train."""
        ...


class Counts(eqx.Module):
    """Bonus 1/√n(s, a), from the visits of each state and action."""

    visits: Float[Array, "states actions"]

    @classmethod
    def create(cls, spec: EnvSpec) -> "Counts":
        """Return counts of zero."""
        return cls(jnp.zeros((spec.num_states, spec.num_actions)))

    def bonus(self, batch: Batch) -> Bonus:
        return jax.lax.rsqrt(jnp.maximum(self.visits[batch.obs, batch.action], 1.0))

    def observe(self, transitions: Transition, mask: Mask) -> "Counts":
        return Counts(self.visits.at[transitions.obs, transitions.action].add(mask))

    def fit(self, batch: Batch) -> "Counts":
        """Change nothing."""
        return self


class Distilled(eqx.Module):
    """A torso and a linear layer, whose outputs one network learns from another."""

    torso: Torso | OwnTorso
    outputs: Dense

    def __call__(self, obs: Shaped[Array, "b ..."]) -> Float[Array, "outputs b"]:
        return self.outputs(self.torso(obs))


class Distillation(eqx.Module):
    """Random network distillation (Burda et al. 2018), https://arxiv.org/abs/1810.12894.

    The bonus of a transition is the squared error of a network that learns the outputs of a fixed
    random one at s', over the standard deviation of the errors in all batches so far.
    """

    net: Distilled
    fixed: Distilled
    moments: optax.OptState
    errors: Float[Array, "3"]
    """Number, sum and sum of squares of errors."""
    adam: Adam = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        spec: EnvSpec,
        key: PRNG,
        *,
        hidden: int,
        torso: TorsoName | Own,
        depth: int,
        adam: Adam,
    ) -> "Distillation":
        """Draw two networks with `hidden` outputs."""

        def network(key: PRNG) -> Distilled:
            torso_key, output_key = jax.random.split(key)
            layers = make_torso(spec, torso, hidden, torso_key, depth)
            return Distilled(layers, Dense.create(output_key, layers.width, hidden))

        first, second, third = jax.random.split(key, 3)
        net, fixed = network(first), network(second)
        if isinstance(torso, Own):  # which has weights of its own, the same each time
            fixed = eqx.tree_at(lambda net: net.torso, fixed, _redrawn(fixed.torso, third))
        return cls(net, fixed, adam.init(net), jnp.zeros(3), adam)

    def bonus(self, batch: Batch) -> Bonus:
        count, total, squares = self.errors
        mean = total / jnp.maximum(count, 1.0)
        variance = squares / jnp.maximum(count, 1.0) - mean**2
        deviation = jnp.maximum(jnp.sqrt(jnp.maximum(variance, 0.0)), LEAST)
        errors = self._errors(self.net, batch)
        return jnp.where(count > 0, errors / deviation, 0.0)

    def observe(self, transitions: Transition, mask: Mask) -> "Distillation":
        """Change nothing: it learns from batches."""
        return self

    def fit(self, batch: Batch) -> "Distillation":
        def loss(net: Distilled):
            errors = self._errors(net, batch)
            return jnp.mean(errors), errors

        gradients, errors = eqx.filter_grad(loss, has_aux=True)(self.net)
        net, moments = self.adam.update(self.net, gradients, self.moments)
        new = jnp.array([errors.size, jnp.sum(errors), jnp.sum(errors**2)])
        changes = {"net": net, "moments": moments, "errors": self.errors + new}
        return dataclasses.replace(self, **changes)

    def _errors(self, net: Distilled, batch: Batch) -> Bonus:
        rows, _ = net.torso.flatten(batch.next_obs)
        return jnp.mean((net(rows) - jax.lax.stop_gradient(self.fixed(rows))) ** 2, axis=0)


def _redrawn(module: PyTree, key: PRNG) -> PyTree:
    """Return a module with normal weights of the same deviation."""
    leaves, structure = jax.tree.flatten(eqx.filter(module, eqx.is_inexact_array))
    keys = jax.random.split(key, max(1, len(leaves)))
    drawn = [
        x if x.ndim < 2 else jnp.std(x) * jax.random.normal(key, x.shape, x.dtype)
        for x, key in zip(leaves, keys[: len(leaves)], strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(structure, drawn), module)
