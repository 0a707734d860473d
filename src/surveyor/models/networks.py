"""Networks: what turns an observation into features φ(s, a) and successor features ψ(s, ·).

The tabular network of appendix C, held so that a gradient step touches only the rows of the states
in its batch: all that belongs to one state, φ's first layer and ψ, is a row of a
`surveyor.models.tables.Table`, all that states share is in `Shared`.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from surveyor.types import EnvSpec

Layers = Literal["one", "two"]


class Shared(eqx.Module):
    """The parameters that every state uses."""

    w: Float[Array, " m"]
    """ŵ, the weights of reward and Q on the features that φ can have."""
    hidden_bias: Float[Array, " d"]
    action: Float[Array, "actions inputs m"]
    """What an action does to the state's hidden layer (two layers), or adds to it (one layer)."""
    action_bias: Float[Array, "actions m"]


class TabularNetwork(eqx.Module):
    """φ̂ and ψ̂ for states that are numbers.

    ψ is linear in the one-hot state-action vector: a row holds ψ(s, a) for every action. φ has

    - one layer (paper): φ(s, a) = ReLU(U_s + V_a), from one-hot state and action vectors;
    - two layers (released code): φ(s, a) = ReLU(V_aᵀ ReLU(U_s + b) + c_a).

    The first `novelty` features are ones that no state has of its own: ψ starts at `psi_init` there
    and at zero in the others. Without them ψ starts at `psi_init` everywhere.
    """

    features: int
    actions: int
    novelty: int
    layers: Layers
    normalise: bool
    psi_init: float

    @property
    def seen(self) -> int:
        """How many features φ can have."""
        return self.features - self.novelty

    def init(
        self, spec: EnvSpec, key: Key[Array, ""]
    ) -> tuple[Float[Array, "n h"], Float[Array, "n width"], Shared]:
        """First values of U, of ψ and of the shared weights: folded Xavier normal, and ŵ = 0."""
        state_key, action_key = jax.random.split(key)
        n, a, d, m = spec.num_states, self.actions, self.features, self.seen
        U = _folded_xavier(state_key, (n, d), n, d)
        if self.layers == "two":
            V = _folded_xavier(action_key, (a, d, m), d, a * d)
        else:
            U = U[:, self.novelty :]  # a hidden unit is a feature, and novelty features need none
            V = _folded_xavier(action_key, (a, 1, m), n, d)
        unseen = (jnp.arange(d) < self.novelty) | (self.novelty == 0)
        psi = jnp.broadcast_to(jnp.where(unseen, self.psi_init, 0.0), (n, a, d))
        shared = Shared(jnp.zeros(m), jnp.zeros(d), V, jnp.zeros((a, m)))
        return U, psi.reshape(n, a * d), shared

    def psi(self, rows: Float[Array, "*b width"]) -> Float[Array, "*b actions d"]:
        """ψ̂(s, ·) of the states with these rows of ψ."""
        return rows.reshape(*rows.shape[:-1], self.actions, self.features)

    def split(
        self, rows: Float[Array, "*b both"]
    ) -> tuple[Float[Array, "*b actions d"], Float[Array, "*b h"]]:
        """ψ̂(s, ·) and U_s of states whose row is both, side by side."""
        width = self.actions * self.features
        return self.psi(rows[..., :width]), rows[..., width:]

    def phi(
        self, hidden: Float[Array, "b h"], action: Int[Array, " b"], shared: Shared
    ) -> Float[Array, "b m"]:
        """φ̂(s, a), without the novelty features, from rows of U."""
        taken = jax.nn.one_hot(action, self.actions)[:, :, None]
        if self.layers == "two":
            a, d, m = shared.action.shape
            hidden = jax.nn.relu(hidden + shared.hidden_bias)
            weights = jnp.moveaxis(shared.action, 0, 1).reshape(d, a * m)
            outputs = linear(hidden, weights).reshape(-1, a, m) + shared.action_bias
        else:
            outputs = hidden[:, None] + shared.action[:, 0]
        phi = jax.nn.relu(jnp.sum(outputs * taken, axis=1))
        return unit(phi) if self.normalise else phi


def unit(phi: Float[Array, "*b m"]) -> Float[Array, "*b m"]:
    """φ / ‖φ‖, and 0 where that is 0."""
    return phi * jax.lax.rsqrt(jnp.sum(phi**2, axis=-1, keepdims=True) + 1e-12)


@jax.custom_vjp
def linear(x: Float[Array, "b n"], weights: Float[Array, "n m"]) -> Float[Array, "b m"]:
    """x @ weights, with a gradient that is fast on CPUs.

    XLA folds the transpose in xᵀ @ g into the product and then has no library routine for it; the
    plain loop that it falls back on would be a fifth of a gradient step.
    """
    return x @ weights


def _linear_backward(saved, g):
    x, weights = saved
    return g @ weights.T, jax.lax.optimization_barrier(x.T) @ g


linear.defvjp(lambda x, weights: (x @ weights, (x, weights)), _linear_backward)


def _folded_xavier(
    key: Key[Array, ""], shape: tuple[int, ...], inputs: int, outputs: int
) -> Float[Array, "*shape"]:
    """|N(0, 2 / (inputs + outputs))|: non-negative, so that no ReLU starts out dead."""
    return jnp.abs(jax.random.normal(key, shape)) * (2 / (inputs + outputs)) ** 0.5
