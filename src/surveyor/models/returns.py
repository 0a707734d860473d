"""The range of returns that have been met, which bounds what Q may claim."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from surveyor.types import Mask

Rewards = Float[Array, " n"]


class Returns(eqx.Module):
    """Smallest and largest discounted sum of consecutive rewards so far, 0 included.

    A sum that ends now is γ times the one that ended a step ago plus the reward, or the reward
    alone if that is further from zero. So the last reward counts in full and the first least, as
    if a stretch of steps were met in reverse: the same for rewards that stay alike, up to the
    largest reward less than a return whose rewards come early. With γ = 1 a sum that goes on over
    time limits has no bound. While no reward has been met both are 0.
    """

    ending: Float[Array, "2 envs"]
    """Sums that end with the newest step of each environment."""
    seen: Float[Array, "2"]

    @classmethod
    def create(cls, envs: int) -> "Returns":
        """Return the range of no rewards."""
        return cls(jnp.zeros((2, envs)), jnp.zeros(2))

    def beside(
        self, reward: Rewards, terminated: Bool[Array, " n"], mask: Mask, discount: float
    ) -> "Returns":
        """Return the range after one step of every environment."""
        ending = jnp.where(mask, self._next(self.ending, reward, discount), self.ending)
        seen = self._widened(ending)
        return Returns(jnp.where(terminated & mask, 0.0, ending), seen)

    def along(self, reward: Rewards, mask: Mask, discount: float) -> "Returns":
        """Return the range after the steps of one episode, in order."""

        def step(ending: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            ending = jnp.where(now[1], self._next(ending, now[0], discount), ending)
            return ending, ending

        _, all_ending = jax.lax.scan(step, jnp.zeros(2), (reward, mask))
        return Returns(self.ending, self._widened(all_ending.T))

    def _next(self, ending: Array, reward: Array, discount: float) -> Array:
        low, high = ending
        return jnp.stack([jnp.minimum(low, 0), jnp.maximum(high, 0)]) * discount + reward

    def _widened(self, ending: Float[Array, "2 n"]) -> Float[Array, "2"]:
        low, high = self.seen
        return jnp.stack([jnp.minimum(low, ending[0].min()), jnp.maximum(high, ending[1].max())])
