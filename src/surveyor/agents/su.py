"""Successor Uncertainties, algorithm 1 of Janz, Hron et al. (2019), https://arxiv.org/abs/1810.06530."""

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from surveyor.agents.learner import ATARI, CLASSIC, MINATAR
from surveyor.agents.su_options import SUOptions
from surveyor.inference.posterior import Posterior
from surveyor.models.losses import alive, q_loss, reward_loss, successor_loss, weighted_mean
from surveyor.models.networks import TabularNetwork
from surveyor.models.successors import DeepSuccessors, Outputs, TabularSuccessors
from surveyor.types import ERRORS, Batch, EnvSpec, Metrics, QPosterior, Trail

DEEP: dict[str, Any] = {
    "beta": 1e-3,
    "zeta": 1 - 1e-5,
    "features": 64,
    "novelty": 0,
    "psi_init": 0.0,
    "successor_trains": "all",
    "q_weight": 1.0,
    "q_trains_w": True,
    "policy": "joint",
    "value_eps": 1e-8,
    "recent": 0,
    "best": 0,
}
"""Table 4, and none of what is ours on tables."""

LEAST_W = 0.01
"""The least ‖ŵ‖² that the Q loss is divided by: ŵ is 0 until the first reward."""


def one_of(trail: Trail, key: Key[Array, ""]) -> Trail:
    """One step of each, drawn in proportion to its discount, with the discounts of all."""
    chosen = jax.random.categorical(key, jnp.log(trail.discount))[:, None]
    at = jnp.arange(len(chosen))[:, None]
    total = jnp.sum(trail.discount, axis=1, keepdims=True)  # 0 where the first step was the last
    return Trail(trail.obs[at, chosen], trail.action[at, chosen], total, trail.reward)


class SUState(eqx.Module):
    """What SU has learnt so far."""

    model: TabularSuccessors | DeepSuccessors
    """φ̂, ψ̂ and ŵ."""
    posterior: Posterior
    rewards: Float[Array, "2"]
    """The least and the largest reward so far, 0 among them."""


class SU(SUOptions):
    """Posterior sampling from Q ~ N(Ψŵ, ΨΣ_wΨᵀ), a joint belief over all states and actions.

    Q(s, a) = ⟨ψ(s, a), w⟩: successor features ψ predict which features φ lie ahead, and Bayesian
    linear regression of rewards on φ says how uncertain their weights w are. One sample of w makes
    a whole Q function, so a sampled policy is consistent from the first step of an episode to the
    last.

    What can be chosen is in `SUOptions`. The defaults are `SU.chain()`.
    """

    closed_form: ClassVar[bool] = True

    @classmethod
    def tree(cls) -> "SU":
        """For the binary tree: as the chain, with 10 gradient steps (table 2), γ = 1 (released
        code), and novelty features that also count the steps ahead (ours)."""
        return cls(
            discount=1.0,
            novelty_step=0.03,
            successor_trains="all",
            value_eps=1e-8,
            novelty_eps=1e-8,
            recent=30,
            best=0,
            replay_capacity=10_000,
            gradient_steps=10,
        )

    @classmethod
    def chain(cls) -> "SU":
        """For the chain: features, layers and gradient steps as in the paper's text and table 3,
        with all that the options call ours."""
        return cls()

    @classmethod
    def atari(cls) -> "SU":
        """For Atari: appendix C.2 and table 4; losses, target and random steps as released. Ours
        is only that the targets of ψ and Q are bounded."""
        return cls(**ATARI, **DEEP)

    @classmethod
    def minatar(cls) -> "SU":
        """For MinAtar: as for Atari, with the network of Young and Tian (2019). What is ours, by
        the search in docs/deep.md: how the Q loss is scaled, double targets, and twice DQN's
        learning rate; and an update for every four steps, where theirs has one for each."""
        ours = {"q_per_w": True, "q_target": "double", "learning_rate": 5e-4}
        return cls(**{**MINATAR, **DEEP, **ours})

    @classmethod
    def classic(cls) -> "SU":
        """For small problems with vectors as observations, such as MountainCar: ours. Random
        features and a variance of rewards as on the chain, so that it is long before all is known;
        ŵ learns from rewards alone."""
        ours = {"theta": 10.0, "beta": 1.0, "zeta": 1.0, "random_features": 48}
        ours |= {"learning_rate": 5e-4}
        ours |= {"policy": "optimistic", "q_trains_w": False, "q_target": "double"}
        return cls(**{**CLASSIC, **DEEP, **ours})

    @classmethod
    def numbered(cls) -> "SU":
        """For Gymnasium environments with numbered states, such as FrozenLake: ours. The chain's
        features and losses, with the rhythm of `classic`."""
        return cls(
            discount=0.99,
            batch_size=64,
            recent=0,
            best=0,
            replay_capacity=50_000,
            train_every=4,
            gradient_steps=4,
            warmup=100,
            envs=4,
        )

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> SUState:
        """Algorithm 1: Λ ← θ⁻¹I, and networks that have seen nothing."""
        prior = Posterior.prior(self.features, self.theta, self.beta, self.zeta)
        return SUState(self._model(spec, key), prior, jnp.zeros(2))

    def sample(self, state: SUState, key: Key[Array, ""]) -> Float[Array, " d"]:
        """w ~ N(ŵ, Σ̂_w)."""
        return state.posterior.sample(key, mean=self.greedy(state))

    def greedy(self, state: SUState) -> Float[Array, " d"]:
        """ŵ."""
        return self._pad(state.model.w)

    def q(self, state, index, obs):
        """⟨ψ̂(s, ·), w⟩."""
        return state.model.psi(obs) @ index

    def observe(self, state, transitions, mask):
        """Λ ← ζΛ + β⁻¹ φ̂(s, a) φ̂(s, a)ᵀ, for every step."""
        phi = state.model.phi(transitions.obs, transitions.action)
        phi = self._pad(phi, self.novelty_step)
        posterior = state.posterior.update(phi, transitions.reward, mask)
        seen = jnp.where(mask, transitions.reward, 0.0)
        low, high = state.rewards
        rewards = jnp.array([jnp.minimum(low, jnp.min(seen)), jnp.maximum(high, jnp.max(seen))])
        return SUState(state.model, posterior, rewards)

    def learn(self, state, batch, key):
        """One step of Adam on the three losses of equation 4."""
        targets = self._targets(state, batch, key)
        parameters, rest = state.model.fetch(batch.obs)

        def loss(parameters):
            outputs = state.model.outputs(parameters, batch.obs, batch.action)
            return self._loss(outputs, batch, targets)

        gradients, metrics = jax.grad(loss, has_aux=True)(parameters)
        model = state.model.update(batch.obs, rest, gradients)
        return SUState(model, state.posterior, state.rewards), metrics

    def q_posterior(self, state, obs, key=None):
        """Equation 3, exactly: N(Ψŵ, ΨΣ_wΨᵀ)."""
        psi = state.model.psi(obs)
        covariance = state.posterior.joint_covariance(psi.reshape(-1, self.features))
        return QPosterior(psi @ self.greedy(state), covariance)

    def diagnose(self, state, obs):
        """Q, the size and condition of the belief, and the entropy of the reference policy."""
        psi = state.model.psi(obs)
        q = psi @ self.greedy(state)
        pi = self._reference_policy(state, psi, q, jax.random.key(0))
        entropy = -jnp.sum(jnp.where(pi > 0, pi * jnp.log(jnp.maximum(pi, 1e-9)), 0.0), axis=1)
        return {
            **super().diagnose(state, obs),
            **state.posterior.diagnose(),
            "policy_entropy": jnp.mean(entropy),
        }

    def _targets(
        self, state: SUState, batch: Batch, key: Key[Array, ""]
    ) -> tuple[Float[Array, "b d"], Float[Array, " b"]]:
        """y_SF = γ E_{a'~π} ψ(s', a') and y_Q = γ⟨ŵ, ψ(s', a')⟩; 0 at the end of an episode.

        Over several steps s' is the last state, and y_SF has the φ of those between as well.
        """
        psi = state.model.next_psi(batch.next_obs)
        deep = isinstance(state.model, DeepSuccessors)
        bounded = self.bound_targets and deep and self.discount < 1
        if bounded and self.normalise:
            # No discounted sum of features of norm 1 is longer, whatever the network says.
            longest = 1 / (1 - self.discount)
            norm = jnp.sqrt(jnp.sum(psi**2, axis=-1, keepdims=True))
            psi = psi * (longest / jnp.maximum(norm, longest))
        q = jnp.sum(psi * self._pad(state.model.next_w), axis=-1)
        pi = self._reference_policy(state, psi, q, key)
        next_q = self._next_q(state, batch, q, pi)
        if bounded:  # and none of rewards exceeds this
            low, high = state.rewards / (1 - self.discount)
            next_q = jnp.clip(next_q, low, high)
        ahead = alive(batch, self.discount)
        successors = ahead[:, None] * jnp.sum(pi[:, :, None] * psi, axis=1)
        trail = batch.trail
        if trail is not None:
            if self.between == "one":
                trail = one_of(trail, jax.random.fold_in(key, 1))
            phi = self._pad(state.model.phi(trail.obs, trail.action), self.novelty_step)
            successors = successors + jnp.sum(trail.discount[:, :, None] * phi, axis=1)
        return successors, ahead * next_q

    def _next_q(self, state: SUState, batch: Batch, q, pi) -> Float[Array, " b"]:
        """⟨ŵ, ψ(s', a')⟩ of the next action in the Q target."""
        if self.q_target == "policy":
            return jnp.sum(pi * q, axis=1)
        if self.q_target == "max":
            return jnp.max(q, axis=1)
        learning = state.model.psi(batch.next_obs) @ self.greedy(state)
        chosen = jnp.argmax(learning, axis=1, keepdims=True)
        return jnp.take_along_axis(q, chosen, axis=1)[:, 0]

    def _reference_policy(
        self,
        state: SUState,
        psi: Float[Array, "b actions d"],
        q: Float[Array, "b actions"],
        key: Key[Array, ""],
    ) -> Float[Array, "b actions"]:
        """π(s), section 4.1: by default of both sources E[greedy policy of a sampled Q]."""
        if self.policy == "joint":
            noise = state.posterior.sample(key, (self.policy_samples,), jnp.zeros(self.features))
            deviations = (psi.reshape(-1, self.features) @ noise.T).reshape(*q.shape, -1)
        else:
            deviations = jnp.sqrt(state.posterior.variance(psi))[:, :, None]
            if self.policy == "marginal":
                noise = jax.random.normal(key, (*q.shape, self.policy_samples))
                deviations = deviations * noise
        samples = q[:, :, None] + self.policy_scale * deviations
        best = (samples == jnp.max(samples, axis=1, keepdims=True)).astype(jnp.float32)
        return jnp.mean(best / jnp.sum(best, axis=1, keepdims=True), axis=2)

    def _loss(
        self,
        outputs: Outputs,
        batch: Batch,
        targets: tuple[Float[Array, "b d"], Float[Array, " b"]],
    ) -> tuple[Float[Array, ""], Metrics]:
        """Equation 4: successor feature loss, reward loss and Q value loss."""
        psi, phi, w = outputs.psi, self._pad(outputs.phi, self.novelty_step), self._pad(outputs.w)
        fixed_phi = phi if self.successor_trains_phi else jax.lax.stop_gradient(phi)
        fixed_w = w if self.q_trains_w else jax.lax.stop_gradient(w)
        successors = partial(successor_loss, kind=self.loss, reduction=self.feature_reduction)
        values = partial(q_loss, fixed_w, kind=self.loss)
        next_psi, next_q = targets
        trained = slice(None if self.successor_trains == "all" else self.novelty)
        successor = weighted_mean(
            jax.vmap(successors)(psi[:, trained], fixed_phi[:, trained], next_psi[:, trained]),
            batch,
        )
        first = batch.reward if batch.trail is None else batch.trail.reward
        reward = weighted_mean(jax.vmap(partial(reward_loss, w))(phi, first), batch)
        q = weighted_mean(jax.vmap(values)(psi, batch.reward, next_q), batch)
        metrics = {"successor_loss": successor, "reward_loss": reward, "q_loss": q}
        if batch.weight is not None:
            metrics[ERRORS] = psi @ fixed_w - batch.reward - next_q
        weight = self.q_weight
        if self.q_per_w:
            weight = weight / jnp.maximum(jax.lax.stop_gradient(jnp.vdot(w, w)), LEAST_W)
        return successor + reward + weight * q, metrics

    def _pad(self, seen: Float[Array, "*b m"], novelty: float = 0.0) -> Float[Array, "*b d"]:
        """φ or ŵ among all features, with this value in the novelty features."""
        widths = [(0, 0)] * (seen.ndim - 1) + [(self.novelty, 0)]
        return jnp.pad(seen, widths, constant_values=novelty)

    def _model(self, spec: EnvSpec, key: Key[Array, ""]) -> TabularSuccessors | DeepSuccessors:
        if not spec.tabular:
            return DeepSuccessors.create(spec, key, self, self._deep_adam(self.value_eps))
        network = TabularNetwork(
            features=self.features,
            actions=spec.num_actions,
            novelty=self.novelty,
            layers=self.layers,
            normalise=self.normalise,
            psi_init=self.psi_init,
        )
        rates = (self.learning_rate, self.value_eps, self.novelty_eps)
        return TabularSuccessors.create(spec, key, network, *rates)
