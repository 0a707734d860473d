"""Reference policies π(s), section 4.1: the policy whose successor features ψ predicts.

Each is a small object that turns ψ and ŵ at some states, and the posterior of w, into action
probabilities.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from surveyor.inference.posterior import Posterior
from surveyor.types import PRNG

Psi = Float[Array, "b actions d"]
Values = Float[Array, "b actions"]
Legal = Bool[Array, "..."] | None
"""True for each action that is allowed, along the last axis; None where all always are."""


def greedy_policy(q: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """Return the greedy action probabilities of Q values along `axis`; ties are shared."""
    first = jax.nn.one_hot(jnp.argmax(q, axis=axis), q.shape[axis], axis=axis, dtype=bool)
    # XLA may compute Q twice and round it in two ways, so that nothing equals the maximum.
    best = (first | (q == jnp.max(q, axis=axis, keepdims=True))).astype(jnp.float32)
    return best / jnp.sum(best, axis=axis, keepdims=True)


def allowed(q: Float[Array, "*b actions"], legal: Legal) -> Float[Array, "*b actions"]:
    """Return Q values with -∞ for every action that is not allowed; None allows all of them."""
    return q if legal is None else jnp.where(legal, q, -jnp.inf)


def entropy(policy: Float[Array, "*b actions"]) -> Float[Array, "*b"]:
    """Return the entropy of action probabilities."""
    return -jnp.sum(jax.scipy.special.xlogy(policy, policy), axis=-1)


@runtime_checkable
class ReferencePolicy(Protocol):
    """A rule for the action probabilities of the reference policy."""

    def __call__(self, posterior: Posterior, psi: Psi, q: Values, key: PRNG) -> Values:
        """Return π(s) from the posterior of w, ψ̂(s, ·) and the mean Q values.

        Q is -∞ for actions that are not allowed, which π never takes.
        """
        ...


class Joint(eqx.Module):
    """E[greedy policy of a sampled Q], from draws of w that all states share."""

    samples: int
    scale: float = 1.0
    """Factor on the deviation of Q from its mean."""

    def __call__(self, posterior: Posterior, psi: Psi, q: Values, key: PRNG) -> Values:
        d = psi.shape[-1]
        noise = posterior.sample(key, (self.samples,), jnp.zeros(d))
        deviations = (psi.reshape(-1, d) @ noise.T).reshape(*q.shape, -1)
        return jnp.mean(greedy_policy(q[:, :, None] + self.scale * deviations, 1), axis=2)


class PerExample(eqx.Module):
    """The greedy policy of one draw of w for each state, as algorithm 1 has it."""

    scale: float = 1.0

    def __call__(self, posterior: Posterior, psi: Psi, q: Values, key: PRNG) -> Values:
        noise = posterior.sample(key, (len(q),), jnp.zeros(psi.shape[-1]))
        deviations = jnp.sum(psi * noise[:, None], axis=-1)
        return greedy_policy(q + self.scale * deviations)


class Marginal(eqx.Module):
    """E[greedy policy of a sampled Q], from independent draws of each action's Q."""

    samples: int
    scale: float = 1.0

    def __call__(self, posterior: Posterior, psi: Psi, q: Values, key: PRNG) -> Values:
        deviations = jnp.sqrt(posterior.variance(psi))[:, :, None]
        deviations = deviations * jax.random.normal(key, (*q.shape, self.samples))
        return jnp.mean(greedy_policy(q[:, :, None] + self.scale * deviations, 1), axis=2)
