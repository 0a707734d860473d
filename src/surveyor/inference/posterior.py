"""Bayesian linear regression in square-root information form.

The model of section 4: w ~ N(0, θI) and r | φ ~ N(⟨φ, w⟩, β), where every new row first shrinks
what is known by ζ:

    Λ ← ζΛ + β⁻¹ φφᵀ,        Σ_w = Λ⁻¹,        μ_w = β⁻¹ Σ_w Σ_i ζ^(N-i) r_i φ_i.

Λ itself is never formed. Its condition number reaches 1e11 on the paper's tree, far beyond float32,
so we keep the upper-triangular R with RᵀR = Λ (Bierman's square-root information filter), whose
condition number is the square root of that. An update is one thin QR, a sample a triangular solve.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from surveyor.types import PRNG, Mask, Metrics

Features = Float[Array, "*n d"]
Each = Float[Array, "*n"]

FLOOR = 1e-8
"""Smallest diagonal of R as a share of its column's norm: below it float32 sees zero."""
DECAYED_FLOOR = 3e-5
"""Smallest share with decay, which shrinks Λ without end in directions that no longer occur. Below
it their variance stays where it is; rounding of R would otherwise leak it into the directions that
are well known."""
PANEL = 32
"""Columns that are made triangular at a time, where there are few rows to a large R."""


class Posterior(eqx.Module):
    """The Gaussian N(μ_w, Σ_w), held as R and z = Rμ_w."""

    R: Float[Array, "d d"]
    z: Float[Array, " d"]
    beta: float = eqx.field(static=True)
    zeta: float = eqx.field(static=True)

    @classmethod
    def prior(cls, d: int, theta: float, beta: float, zeta: float = 1.0) -> "Posterior":
        """Return N(0, θI).

        **Arguments:**

        - `d`: number of features.
        - `theta`: prior variance θ of each weight.
        - `beta`, `zeta`: likelihood variance β of a target, and decay ζ of Λ at every row.
        """
        return cls(jnp.eye(d) / jnp.sqrt(jnp.float32(theta)), jnp.zeros(d), beta, zeta)

    def update(
        self, features: Features, targets: Each | None = None, mask: Bool[Array, "*n"] | None = None
    ) -> "Posterior":
        """Condition on one feature row φ, or on many in the order in which they came.

        Without `targets` r only the covariance is updated, for agents that take their mean from the
        network. Rows outside `mask` count for nothing, decay included.
        """
        features = jnp.atleast_2d(features)
        n, d = features.shape
        targets = jnp.zeros(n) if targets is None else jnp.atleast_1d(targets)
        valid = jnp.ones(n) if mask is None else jnp.atleast_1d(mask).astype(jnp.float32)
        later = jnp.sum(valid) - jnp.cumsum(valid)  # valid rows after each row
        weight = valid * self._decay(later) / jnp.sqrt(jnp.float32(self.beta))
        rows = jnp.column_stack([features, targets]) * weight[:, None]
        known = jnp.column_stack([self.R, self.z]) * self._decay(jnp.sum(valid))
        triangle = _triangle(known, rows)
        R = _away_from_singular(triangle[:, :d], FLOOR if self.zeta == 1 else DECAYED_FLOOR)
        return Posterior(R, triangle[:, d], self.beta, self.zeta)

    def sample(
        self, key: PRNG, shape: tuple[int, ...] = (), mean: Float[Array, " d"] | None = None
    ) -> Float[Array, "*shape d"]:
        """Draw w ~ N(mean, Σ_w) in this shape, around μ_w unless another mean is given (SU's ŵ)."""
        d = self.z.size
        noise = jax.random.normal(key, (d, math.prod(shape)))
        centred = solve_triangular(self.R, noise).T.reshape(*shape, d)
        return centred + jnp.broadcast_to(self.mean if mean is None else mean, centred.shape)

    @property
    def mean(self) -> Float[Array, " d"]:
        """μ_w."""
        return solve_triangular(self.R, self.z)

    @property
    def covariance(self) -> Float[Array, "d d"]:
        """Σ_w."""
        return self.joint_covariance(jnp.eye(self.z.size))

    def variance(self, features: Features) -> Each:
        """Return φᵀΣ_wφ of each row."""
        return jnp.sum(self._whiten(features) ** 2, axis=0).reshape(features.shape[:-1])

    def joint_covariance(self, features: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """Return ΦΣ_wΦᵀ, the covariance of the predictions at all rows."""
        white = self._whiten(features)
        return white.T @ white

    def diagnose(self) -> Metrics:
        """Return the trace of Σ_w and the condition number of Λ."""
        sizes = jnp.linalg.svd(self.R, compute_uv=False)
        condition = (sizes[0] / jnp.maximum(sizes[-1], 1e-30)) ** 2
        return {"posterior_trace": jnp.sum(sizes**-2.0), "posterior_condition": condition}

    def _decay(self, rows: Each) -> Each:
        """Return the factor on √Λ after this many further rows: ζ^(rows/2)."""
        return jnp.float32(self.zeta) ** (rows / 2)

    def _whiten(self, features: Features) -> Float[Array, "d rows"]:
        """Return R⁻ᵀφ, a column for each row, so that ΦΣ_wΦᵀ is a Gram matrix, never indefinite."""
        return solve_triangular(self.R, features.reshape(-1, self.z.size).T, trans=1)


class ActionPosteriors(eqx.Module):
    """One independent posterior for each action, over weights of features φ(s) (BDQN, UBE)."""

    each: Posterior
    """All posteriors, along the first axis of every array."""

    @classmethod
    def prior(cls, one: Posterior, actions: int) -> "ActionPosteriors":
        """Return the same prior for every action."""
        return cls(jax.tree.map(lambda x: jnp.broadcast_to(x, (actions, *x.shape)), one))

    def update(
        self, features: Float[Array, "n d"], action: Int[Array, " n"], mask: Mask
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

    def variance(self, features: Features) -> Float[Array, "*n actions"]:
        """Return φᵀΣ_aφ of each row, under every action."""
        return jax.vmap(lambda one: one.variance(features), out_axes=-1)(self.each)

    def joint_covariance(self, features: Float[Array, "n d"]) -> Float[Array, "pairs pairs"]:
        """Return the covariance of ⟨φ(s), w_a⟩ at all rows and actions; zero between actions."""
        blocks = jax.vmap(lambda one: one.joint_covariance(features))(self.each)
        actions, n = blocks.shape[:2]
        joint = jnp.einsum("aij,ab->iajb", blocks, jnp.eye(actions))
        return joint.reshape(n * actions, n * actions)

    def diagnose(self) -> Metrics:
        """Return the trace of Σ over the weights of all actions, and the worst condition number."""
        found = jax.lax.map(lambda one: one.diagnose(), self.each)
        trace, condition = found["posterior_trace"], found["posterior_condition"]
        return {"posterior_trace": jnp.sum(trace), "posterior_condition": jnp.max(condition)}


def _triangle(known: Float[Array, "d m"], rows: Float[Array, "n m"]) -> Float[Array, "d m"]:
    """Return the triangle of a QR of both; `known` is triangular already.

    Where it is large and the rows are few, a reflection of a panel of columns touches only the
    known rows of that panel: 2nd² operations in place of 4d³/3.
    """
    d, n = len(known), len(rows)
    if d < 4 * (n + PANEL):
        return jnp.linalg.qr(jnp.concatenate([known, rows]), mode="r")[:d]
    done = []
    for k in range(0, d, PANEL):
        width = min(PANEL, d - k)
        block = jnp.concatenate([known[k : k + width, k:], rows])
        block = jnp.linalg.qr(block[:, :width], mode="complete")[0].T @ block
        done.append(jnp.pad(jnp.triu(block[:width]), ((0, 0), (k, 0))))
        rows = block[width:, width:]
    return jnp.concatenate(done)


def _away_from_singular(R: Float[Array, "d d"], floor: float) -> Float[Array, "d d"]:
    """Keep the diagonal above this share of its column's norm."""
    diagonal = jnp.diagonal(R)
    least = jnp.maximum(floor * jnp.linalg.norm(R, axis=0), 1e-12)
    safe = jnp.where(diagonal < 0, -1.0, 1.0) * jnp.maximum(jnp.abs(diagonal), least)
    return R + jnp.diag(safe - diagonal)
