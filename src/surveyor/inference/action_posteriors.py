"""Bayesian linear regression for each action apart, as BDQN and UBE have it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from surveyor.inference.posterior import Posterior
from surveyor.types import PRNG, Mask


class ActionPosteriors(eqx.Module):
    """One independent posterior for each action, over weights of features φ(s) (BDQN, UBE)."""

    each: Posterior
    """All posteriors, along the first axis of every array."""

    @classmethod
    def prior(
        cls, actions: int, d: int, theta: float, beta: float, zeta: float = 1.0
    ) -> "ActionPosteriors":
        """Return N(0, θI) for every action, with likelihood variance β and decay ζ."""
        one = Posterior.prior(d, theta, beta, zeta)
        return cls(jax.tree.map(lambda x: jnp.broadcast_to(x, (actions, *x.shape)), one))

    def update(
        self,
        features: Float[Array, "n d"],
        action: Int[Array, " n"],
        mask: Mask,
    ) -> "ActionPosteriors":
        """Condition the covariance of each action's weights on the rows in which it was taken."""
        if len(action) < len(self.each.R):  # row by row: no action is touched that was not taken

            def one(i, each):
                old = jax.tree.map(lambda x: x[action[i]], each)
                new = old.update(features[i], None, mask[i])
                return jax.tree.map(lambda x, one: x.at[action[i]].set(one), each, new)

            return ActionPosteriors(jax.lax.fori_loop(0, len(action), one, self.each))
        taken = action == jnp.arange(len(self.each.R))[:, None]
        update = jax.vmap(lambda one, taken: one.update(features, None, mask & taken))
        return ActionPosteriors(update(self.each, taken))

    def sample(self, key: PRNG, mean: Float[Array, "actions d"]) -> Float[Array, "actions d"]:
        """Draw w_a ~ N(mean_a, Σ_a), independently for each action."""
        draw = jax.vmap(lambda one, key, mean: one.sample(key, (), mean))
        return draw(self.each, jax.random.split(key, len(mean)), mean)

    def variance(self, features: Float[Array, "*n d"]) -> Float[Array, "*n actions"]:
        """Return φᵀΣ_aφ of each row, under every action."""
        return jax.vmap(lambda one: one.variance(features), out_axes=-1)(self.each)

    def joint_covariance(self, features: Float[Array, "n d"]) -> Float[Array, "pairs pairs"]:
        """Return the covariance of ⟨φ(s), w_a⟩ at all rows and actions; zero between actions."""
        blocks = jax.vmap(lambda one: one.joint_covariance(features))(self.each)
        actions, n = blocks.shape[:2]
        joint = jnp.einsum("aij,ab->iajb", blocks, jnp.eye(actions))
        return joint.reshape(n * actions, n * actions)

    def diagnose(self) -> dict[str, Float[Array, ""]]:
        """Return the trace of Σ over the weights of all actions, and the worst condition number."""
        found = jax.lax.map(lambda one: one.diagnose(), self.each)
        trace, condition = found["posterior_trace"], found["posterior_condition"]
        return {"posterior_trace": jnp.sum(trace), "posterior_condition": jnp.max(condition)}
