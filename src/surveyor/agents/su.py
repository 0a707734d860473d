"""Successor Uncertainties, algorithm 1 of Janz, Hron et al. (2019), https://arxiv.org/abs/1810.06530."""

from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from surveyor.agents import check
from surveyor.agents.base import Agent
from surveyor.losses import Penalty, Reduction, q_loss, reward_loss, successor_loss
from surveyor.networks import Layers, Shared, TabularNetwork
from surveyor.optim import RowAdam, Table
from surveyor.posterior import Posterior
from surveyor.types import EnvSpec, Metrics, QPosterior, Transition


class SUState(eqx.Module):
    """What SU has learnt so far."""

    rows: Table
    """For each state ψ̂(s, ·), and U_s, the first layer of the φ network."""
    shared: Shared
    optimiser: optax.OptState
    posterior: Posterior
    step: Int[Array, ""]


class SU(Agent):
    """Posterior sampling from Q ~ N(Ψŵ, ΨΣ_wΨᵀ), a joint belief over all states and actions.

    Q(s, a) = ⟨ψ(s, a), w⟩: successor features ψ predict which features φ lie ahead, and Bayesian
    linear regression of rewards on φ says how uncertain their weights w are. One sample of w makes
    a whole Q function, so a sampled policy is consistent from the first step of an episode to the
    last.

    Where the paper's text and the released code differ, the choice is an option and its
    description says which source takes which side. The defaults are `SU.chain()`.
    """

    theta: float = 1.0
    """Prior variance θ of each weight."""
    beta: float = 1.0
    """Likelihood variance β of a reward."""
    zeta: float = 1.0
    """Decay ζ of what is known, at every step."""
    discount: float = 0.995
    """γ: below 1 in the paper, 1 in the released tabular code."""
    features: int = 20
    """d, the number of features."""
    novelty: int = 10
    """Ours: how many of the features no state has of its own. ψ starts at psi-init in these and at
    zero in the others, so that an unseen action has mean Q zero, as under the prior, and keeps
    the prior's variance. With 0, as in both sources, ψ starts at psi-init everywhere."""
    novelty_step: float = 0.0
    """Ours: what φ has in each novelty feature after all, the same at every step. Above 0, ψ also
    grows with the steps that lie ahead, so that a long known way is preferred to an untried end:
    right where most untried actions end the episode (tree), wrong where none does (chain)."""
    layers: Layers = "one"
    """Layers of the φ network: one (paper) or two (released code)."""
    normalise: bool = True
    """Whether ‖φ‖ is made 1 (paper) or left as it comes (released code)."""
    psi_init: float = 1.0
    """What ψ starts at: 1 in the released code; the paper is silent."""
    loss: Penalty = "smooth_l1"
    """Successor and Q loss: squared (paper) or smooth-l1 (released code)."""
    feature_reduction: Reduction = "mean"
    """Successor loss: sum over features (paper) or mean (released code)."""
    successor_trains: Literal["all", "novelty"] = "novelty"
    """Which features of ψ the successor loss trains: all (both sources), or the novelty features
    only (ours), which leaves the others to the Q loss, at zero until a reward is found: else the
    first change of ŵ would change Q in every state at once."""
    successor_trains_phi: bool = False
    """Whether the successor loss also trains φ (paper) or holds it fixed (released code)."""
    q_weight: float = 10.0
    """The weight of the Q loss; 1 in both sources."""
    q_trains_w: bool = False
    """Whether the Q loss also trains ŵ (both sources). Ours: ŵ learns from rewards alone, which
    stops it from running away with its own targets after the first success."""
    q_target: Literal["policy", "max"] = "max"
    """Next action in the Q target: a' ~ π (paper) or the maximum under ŵ (released code)."""
    policy: Literal["optimistic", "joint", "marginal"] = "optimistic"
    """The reference policy π that ψ predicts. joint: E[greedy policy of a sampled Q], from draws
    of w (paper). marginal: the same from independent draws of each action's Q (released code).
    optimistic, ours: greedy on mean plus standard deviation of Q, which keeps the weight in ψ of
    what is new; under E[greedy] it halves with every step that this lies ahead."""
    policy_samples: int = 20
    """Draws for E[greedy]: 20 in the released code; algorithm 1 takes one for each example."""
    policy_scale: float = 1.0
    """A factor on the deviation of Q in π: 1 (paper); the released code puts its β here."""
    learning_rate: float = 1e-3
    """Adam's, for everything."""
    value_eps: float = 1e-3
    """Ours: Adam's ε for all that learns from rewards: ŵ, φ, and the features of ψ that have weight
    in Q. With the usual 1e-8 (released code; the paper is silent) steps stay large however small an
    error is: the maximum in the target adds up how Q wavers over all the steps ahead, and small
    rewards push all states to one and the same φ, which no later reward can tell apart."""
    novelty_eps: float = 1e-6
    """Ours: the same for the novelty features, where it lets ψ tell what is new n steps ahead from
    what is new n + 1 steps ahead; larger, ψ would be slow to learn that a state is known."""
    batch_size: int = 100
    """Transitions in a gradient step."""
    recent: int = 10
    """Ours: how many of a batch come from the newest episode. 0 in both sources."""
    best: int = 20
    """Ours: how many of a batch come from the best episode so far. 0 in both sources."""
    replay_capacity: int = 1_000_000
    """Transitions remembered: 10,000 in both sources."""
    gradient_steps: int = 40
    """Gradient steps after every episode: 10 on the tree, 40 on the chain (tables 2 and 3)."""

    def __check_init__(self):
        check.positive(self, "theta", "beta", "q_weight", "policy_scale", "learning_rate")
        check.positive(self, "value_eps", "novelty_eps")
        check.share(self, "zeta", "discount")
        check.at_least(self, 1, "features", "policy_samples")
        check.at_least(self, 0, "novelty_step")
        check.that(
            self.novelty > 0 or self.successor_trains == "all",
            "successor_trains must be all where there are no novelty features.",
        )
        check.that(
            0 <= self.novelty < self.features,
            f"novelty must be from 0 to features - 1 = {self.features - 1}, not {self.novelty}.",
        )

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

    def init(self, spec: EnvSpec, key: Key[Array, ""]) -> SUState:
        """Algorithm 1: Λ ← θ⁻¹I, and networks that have seen nothing."""
        hidden, psi, shared = self._network(spec.num_actions).init(spec, key)
        prior = Posterior.prior(self.features, self.theta, self.beta, self.zeta)
        optimiser = self._optimiser.init(eqx.filter(shared, eqx.is_array))
        rows = Table.create(jnp.concatenate([psi, hidden], axis=1))
        return SUState(rows, shared, optimiser, prior, jnp.zeros((), jnp.int32))

    def sample(self, state: SUState, key: Key[Array, ""]) -> Float[Array, " d"]:
        """w ~ N(ŵ, Σ̂_w)."""
        return state.posterior.sample(key, mean=self.greedy(state))

    def greedy(self, state: SUState) -> Float[Array, " d"]:
        """ŵ."""
        return jnp.pad(state.shared.w, (self.novelty, 0))

    def q(self, state, index, obs):
        """⟨ψ̂(s, ·), w⟩."""
        return self._rows(state, obs)[0] @ index

    def observe(self, state, transitions, mask):
        """Λ ← ζΛ + β⁻¹ φ̂(s, a) φ̂(s, a)ᵀ, for every step of the episode."""
        hidden = self._rows(state, transitions.obs)[1]
        network = self._network_of(state)
        phi = network.phi(hidden, transitions.action, state.shared)
        phi = network.pad(phi, self.novelty_step)
        posterior = state.posterior.update(phi, transitions.reward, mask)
        return eqx.tree_at(lambda state: state.posterior, state, posterior)

    def learn(self, state, batch, key):
        """One step of Adam on the three losses of equation 4."""
        network, adam = self._network_of(state), self._adam(state)
        rows = adam.fetch(state.rows, batch.obs, state.step)
        all_psi, hidden = network.split(rows.value)
        taken = jax.nn.one_hot(batch.action, network.actions)[:, :, None]
        psi = jnp.sum(all_psi * taken, axis=1)
        next_psi = self._rows(state, batch.next_obs)[0]
        targets = self._targets(state, next_psi, batch.terminated, key)
        gradients, metrics = jax.grad(self._loss, (0, 1, 2), has_aux=True)(
            hidden, psi, state.shared, network, batch, targets
        )
        psi_gradient = (gradients[1][:, None] * taken).reshape(len(psi), -1)
        gradient = jnp.concatenate([psi_gradient, gradients[0]], axis=1)
        new_rows = adam.update(state.rows, batch.obs, rows, gradient, state.step)
        updates, optimiser = self._optimiser.update(gradients[2], state.optimiser)
        shared = eqx.apply_updates(state.shared, updates)
        return SUState(new_rows, shared, optimiser, state.posterior, state.step + 1), metrics

    def q_posterior(self, state, obs, key=None):
        """Equation 3, exactly: N(Ψŵ, ΨΣ_wΨᵀ)."""
        psi = self._rows(state, obs)[0]
        covariance = state.posterior.joint_covariance(psi.reshape(-1, self.features))
        return QPosterior(psi @ self.greedy(state), covariance)

    def _targets(
        self,
        state: SUState,
        psi: Float[Array, "b actions d"],
        terminated: Bool[Array, " b"],
        key: Key[Array, ""],
    ) -> tuple[Float[Array, "b d"], Float[Array, " b"]]:
        """y_SF = γ E_{a'~π} ψ(s', a') and y_Q = γ⟨ŵ, ψ(s', a')⟩ from ψ(s', ·); 0 at the end."""
        q = jnp.sum(psi * self.greedy(state), axis=-1)
        pi = self._reference_policy(state, psi, q, key)
        next_q = jnp.max(q, axis=1) if self.q_target == "max" else jnp.sum(pi * q, axis=1)
        alive = self.discount * (1.0 - terminated)
        return alive[:, None] * jnp.sum(pi[:, :, None] * psi, axis=1), alive * next_q

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
        hidden: Float[Array, "b h"],
        psi: Float[Array, "b d"],
        shared: Shared,
        network: TabularNetwork,
        batch: Transition,
        targets: tuple[Float[Array, "b d"], Float[Array, " b"]],
    ) -> tuple[Float[Array, ""], Metrics]:
        """Equation 4: successor feature loss, reward loss and Q value loss."""
        phi = network.pad(network.phi(hidden, batch.action, shared), self.novelty_step)
        fixed_phi = phi if self.successor_trains_phi else jax.lax.stop_gradient(phi)
        w = network.pad(shared.w)
        fixed_w = w if self.q_trains_w else jax.lax.stop_gradient(w)
        successors = partial(successor_loss, kind=self.loss, reduction=self.feature_reduction)
        values = partial(q_loss, fixed_w, kind=self.loss)
        next_psi, next_q = targets
        trained = slice(None if self.successor_trains == "all" else self.novelty)
        successor = jnp.mean(
            jax.vmap(successors)(psi[:, trained], fixed_phi[:, trained], next_psi[:, trained])
        )
        reward = jnp.mean(jax.vmap(partial(reward_loss, w))(phi, batch.reward))
        q = jnp.mean(jax.vmap(values)(psi, batch.reward, next_q))
        metrics = {"successor_loss": successor, "reward_loss": reward, "q_loss": q}
        return successor + reward + self.q_weight * q, metrics

    def _rows(
        self, state: SUState, obs: Int[Array, "*b"]
    ) -> tuple[Float[Array, "*b actions d"], Float[Array, "*b h"]]:
        """ψ̂(s, ·) and U_s."""
        rows = self._adam(state).fetch(state.rows, obs, state.step).value
        return self._network_of(state).split(rows)

    def _network(self, actions: int) -> TabularNetwork:
        return TabularNetwork(
            features=self.features,
            actions=actions,
            novelty=self.novelty,
            layers=self.layers,
            normalise=self.normalise,
            psi_init=self.psi_init,
        )

    def _network_of(self, state: SUState) -> TabularNetwork:
        return self._network(state.shared.action.shape[0])

    def _adam(self, state: SUState) -> RowAdam:
        psi = (self.novelty_eps,) * self.novelty
        psi = psi + (self.value_eps,) * (self.features - self.novelty)
        psi = psi * self._network_of(state).actions
        hidden = (self.value_eps,) * (state.rows.width - len(psi))
        return RowAdam(self.learning_rate, eps=psi + hidden)

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        # Flattened: one small kernel in place of one for each array.
        return optax.flatten(optax.adam(self.learning_rate, eps=self.value_eps))
