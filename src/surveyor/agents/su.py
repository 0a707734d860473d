"""Successor Uncertainties, algorithm 1 of Janz, Hron et al. (2019), https://arxiv.org/abs/1810.06530."""

from functools import partial
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from surveyor.agents.base import PRNG, Agent, Mask, Obs, Q
from surveyor.agents.options import Count, Positive, Rule, Share, Size, option
from surveyor.inference.policies import (
    Joint,
    Marginal,
    PerExample,
    ReferencePolicy,
    allowed,
    entropy,
)
from surveyor.inference.posterior import Posterior
from surveyor.models.deep_successors import DeepSuccessors, Normalise
from surveyor.models.losses import Equation4, Penalty, Targets, bootstrap_factor
from surveyor.models.optimiser import Adam
from surveyor.models.successors import SuccessorModel, W
from surveyor.models.tabular_successors import Layers, TabularSuccessors
from surveyor.types import Batch, EnvSpec, Metrics, QPosterior, Schedule, Transition, Update

DRAWS = Rule(lambda agent: agent.policy != "per_example", "policy = joint or marginal")


class SUState(eqx.Module):
    """Everything that algorithm 1 changes: φ̂, ψ̂ and ŵ, and Λ as its square root."""

    model: SuccessorModel
    posterior: Posterior


class SU(Agent[SUState, W]):
    """Algorithm 1: posterior sampling from Q ~ N(Ψŵ, ΨΣ_wΨᵀ), a joint belief over all (s, a).

    Q(s, a) = ⟨ψ(s, a), w⟩: successor features ψ predict which features φ lie ahead, and Bayesian
    linear regression of rewards on φ says how uncertain their weights w are. Where the paper's text
    and its released code differ there is an option.
    """

    closed_form: ClassVar[bool] = True

    theta: Positive = 1.0
    """Prior variance θ of each weight."""
    beta: Positive = 1e-2
    """Likelihood variance β of a reward."""
    zeta: Share = 1.0
    """Decay ζ of Λ at every step."""
    discount: Share = 0.99
    """γ: below 1 in the text, 1 in the released tabular code."""
    features: Size = 20
    """d, the number of features."""
    layers: Layers = option("one", on="tables")
    """Layers of the φ network: one (text) or two (released code)."""
    normalise: Normalise = option("each", together="networks")
    """Norm of φ: 1 for each action (text), 1 for all together (released Atari), free (tabular)."""
    psi_init: float = 1.0
    """Start of ψ: 1 in the released tabular code, 0 in its Atari code; the text is silent."""
    psi_relu: bool = option(True, on="networks")
    """True for a ReLU on ψ (section 4.3, released code); appendix C.2 has none."""
    hidden: Size = option(1024, on="networks")
    """Width of the hidden layer (table 4)."""
    loss: Penalty = "squared"
    """Successor and Q loss: squared, summed over features (text), or smooth-L1, averaged (code)."""
    successor_trains_phi: bool = True
    """True if the successor loss also trains φ (text), False to hold it fixed (released code)."""
    q_target: Literal["policy", "max"] = "policy"
    """Next action in y_Q: a' ~ π (text), or the best one under ŵ (released code)."""
    policy: Literal["joint", "per_example", "marginal"] = "joint"
    """π as E[greedy policy of a sampled w] (joint, section 4.1), as the greedy policy of one w for
    each example (algorithm 1), or E[greedy] of independent draws of each Q (marginal, code)."""
    policy_samples: Size = option(20, needs=DRAWS)
    """Draws for an expectation over policies: 20 in the released code."""
    policy_scale: Positive = 1.0
    """Factor on the deviation of Q in π: 1 (text); the released code puts its β here."""
    learning_rate: Positive = 1e-3
    """Adam's learning rate."""
    target_every: Size = option(2_500, on="networks")
    """Gradient steps between updates of the target network (table 4)."""
    max_norm: Positive = option(10.0, on="networks")
    """Norm to which longer gradients are clipped (table 4)."""
    batch_size: Size = 100
    """Transitions in a batch: 100 in the released tabular code, 32 on Atari (table 4)."""
    replay_capacity: Size = 10_000
    """Transitions in the replay: 10,000 (appendix C.1)."""
    gradient_steps: Count = 40
    """Gradient steps after every episode, or after every `train_every` steps (tables 2 and 3)."""
    train_every: Count = option(0, on="steps")
    """Environment steps between updates: 4 on Atari (table 4)."""
    warmup: Count = option(0, on="steps")
    """Random steps before the first update: 100,000 in the released Atari code."""
    redraw_every: Count = option(0, on="steps")
    """Steps between draws of w within an episode: 250 in the released Atari code; 0 for never."""

    @property
    def schedule(self) -> Schedule:
        when = (self.gradient_steps, self.train_every, self.warmup, 1, self.redraw_every)
        return Schedule(*when, self.batch_size, self.replay_capacity, discount=self.discount)

    def init(self, spec: EnvSpec, key: PRNG) -> SUState:
        """Λ ← θ⁻¹I, and the networks of appendices C.1 (numbered states) and C.2."""
        prior = Posterior.prior(self.features, self.theta, self.beta, self.zeta)
        if spec.tabular:
            table = partial(TabularSuccessors.create, features=self.features)
            table = partial(table, psi_init=self.psi_init, layers=self.layers)
            table = partial(table, normalise=self.normalise != "none")
            return SUState(table(spec, key, learning_rate=self.learning_rate), prior)
        net = partial(DeepSuccessors.create, features=self.features, hidden=self.hidden)
        net = partial(net, psi_init=self.psi_init, psi_relu=self.psi_relu, normalise=self.normalise)
        adam = Adam(self.learning_rate, max_norm=self.max_norm)
        return SUState(net(spec, key, adam=adam, target_every=self.target_every), prior)

    def sample(self, state: SUState, key: PRNG) -> W:
        """For each episode, w ~ N(ŵ, Σ̂_w)."""
        return state.posterior.sample(key, mean=state.model.w)

    def greedy(self, state: SUState) -> W:
        """ŵ, which evaluations act on."""
        return state.model.w

    def q(self, state: SUState, index: W, obs: Obs) -> Q:
        """Return ⟨ψ̂(s, ·), w⟩, which a ← argmax_z maximises over actions z."""
        return state.model.psi(obs) @ index

    def observe(self, state: SUState, transitions: Transition, mask: Mask) -> SUState:
        """Λ ← ζΛ + β⁻¹ φ̂(s, a) φ̂(s, a)ᵀ, for every step."""
        phi = state.model.phi(transitions.obs, transitions.action)
        return SUState(state.model, state.posterior.update(phi, transitions.reward, mask))

    def learn(self, state: SUState, batch: Batch, key: PRNG) -> tuple[SUState, Update]:
        """φ̂, ψ̂, ŵ ← SGD.step(Σ_b SU_LOSS(b, Σ̂_w))."""
        equation_4 = Equation4(self.loss, self.successor_trains_phi)
        loss = partial(equation_4, batch, self.targets(state, batch, key))
        model, update = state.model.fit(batch.obs, batch.action, loss)
        return SUState(model, state.posterior), update

    def targets(self, state: SUState, batch: Batch, key: PRNG) -> Targets:
        """y_SF = γ E_{a'~π} ψ̂(s', a') and y_Q = γ⟨ŵ, ψ̂(s', a')⟩; 0 at the end of an episode."""
        psi = state.model.target_psi(batch.next_obs)
        q = jnp.sum(psi * state.model.target_w, axis=-1)
        legal_q = allowed(q, batch.next_legal)
        pi = self.reference()(state.posterior, psi, legal_q, key)
        next_q = jnp.sum(pi * q, axis=1) if self.q_target == "policy" else jnp.max(legal_q, axis=1)
        ahead = bootstrap_factor(batch, self.discount)
        return Targets(ahead[:, None] * jnp.sum(pi[:, :, None] * psi, axis=1), ahead * next_q)

    def reference(self) -> ReferencePolicy:
        """Return the rule for π, the policy whose successor features ψ̂ predicts."""
        if self.policy == "per_example":
            return PerExample(self.policy_scale)
        kind = Joint if self.policy == "joint" else Marginal
        return kind(self.policy_samples, self.policy_scale)

    def q_posterior(self, state: SUState, obs: Obs, key: PRNG | None = None) -> QPosterior:
        """Equation 3, exactly: N(Ψŵ, ΨΣ_wΨᵀ)."""
        psi = state.model.psi(obs)
        covariance = state.posterior.joint_covariance(psi.reshape(-1, psi.shape[-1]))
        return QPosterior(psi @ state.model.w, covariance)

    def diagnose(self, state: SUState, obs: Obs) -> Metrics:
        """Return mean Q, size and condition of the posterior, and the entropy of π."""
        psi = state.model.psi(obs)
        pi = self.reference()(state.posterior, psi, psi @ state.model.w, jax.random.key(0))
        belief = {**super().diagnose(state, obs), **state.posterior.diagnose()}
        return {**belief, "policy_entropy": jnp.mean(entropy(pi))}
