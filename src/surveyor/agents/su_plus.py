"""SU+: this library's improvement of Successor Uncertainties, made of the same parts."""

import dataclasses
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from surveyor.agents.learner import Learner
from surveyor.agents.options import Count, NonNegative, Positive, Rule, Share, Size, option
from surveyor.agents.su import SuccessorUncertainties, SUState
from surveyor.errors import require
from surveyor.inference.policies import Joint, Optimistic, ReferencePolicy, allowed
from surveyor.inference.posterior import Posterior
from surveyor.models.deep_successors import DeepSuccessors
from surveyor.models.losses import Objective, Targets, Weighted, bootstrap_factor
from surveyor.models.successors import Bounded, BoundedModel, Novelty, W
from surveyor.models.tabular_successors import TabularSuccessors
from surveyor.types import PRNG, Batch, EnvSpec, Mask, Schedule, Trail, Transition

State = SUState[BoundedModel]
NOVELTY = Rule(lambda agent: agent.novelty > 0, "novelty above 0")
WAVES = Rule(lambda agent: agent.random_features > 0, "random_features above 0")
TRAIL = Rule(lambda agent: agent.n_step > 1, "n_step above 1")
DRAWS = Rule(lambda agent: agent.policy == "joint", "policy = joint")


class SUPlus(SuccessorUncertainties[BoundedModel], Learner[State, W]):
    """Algorithm 1 with novelty features, an optimistic reference policy and bounded targets."""

    beta: Positive = 1.0
    discount: Share = 0.995
    """γ."""
    features: Size = 20
    """d, the number of features."""
    novelty: Count = option(10, on="tables")
    """Features of ψ that no state has of its own: an untried action has mean Q zero and keeps the
    prior's variance."""
    novelty_step: NonNegative = option(0.0, on="tables", needs=NOVELTY)
    """φ of each novelty feature at every step. Above 0, ψ also grows with the steps that lie ahead,
    so that a long known way is preferred to an untried end: right where most untried actions end
    the episode (tree), wrong where none does (chain)."""
    novelty_eps: Positive = option(1e-6, on="tables", needs=NOVELTY)
    """Adam's ε of the novelty features, which lets ψ tell news n steps ahead from n + 1."""
    random_features: Count = option(0, on="networks")
    """Features that are random waves of the observation, never trained: they separate states
    before the first reward, which learned features cannot."""
    random_scale: Positive = option(3.0, on="networks", needs=WAVES)
    """Radians that random waves turn on average over a distance of 1 in an observation."""
    successor_trains: Literal["all", "novelty"] = option("novelty", on="tables")
    """Features of ψ that the successor loss trains. novelty leaves the others to the Q loss, at
    zero until a reward is found: else the first change of ŵ would change Q in every state."""
    q_weight: Positive = 10.0
    """Weight of the Q loss."""
    q_per_w: bool = option(False, on="networks")
    """True if the Q loss is divided by ‖ŵ‖², above 0.01: ψ learns from an error of Q times ŵ, which
    is small where rewards are rare."""
    q_trains_w: bool = False
    """True if the Q loss also trains ŵ. If not, ŵ cannot run away with its own targets."""
    q_target: Literal["max", "double"] = option("max", double="networks")
    """Next action in the Q target: the best one under the target network, or (double) under the
    network that learns."""
    between: Literal["all", "one"] = option("all", on="steps", needs=TRAIL)
    """Steps of an `n_step` return, beside the first, whose φ is in the target of ψ: all, or one
    drawn at random to stand for all, which takes a third of the time on a large network."""
    policy: Literal["optimistic", "joint"] = "optimistic"
    """Reference policy π. optimistic: greedy on mean plus standard deviation of Q, which keeps the
    weight in ψ of what is new. joint: E[greedy policy of a sampled Q], as the paper has it."""
    policy_samples: Size = option(20, needs=DRAWS)
    """Draws for policy = joint."""
    value_eps: Positive = 1e-3
    """Adam's ε of everything that learns from rewards. With the usual 1e-8, steps stay large
    however small an error is, and the maximum in the target adds up how Q wavers."""
    hidden: Size = option(128, on="networks")
    replay_capacity: Size = 1_000_000
    replay: str = "recent-and-best(10, 20)"
    gradient_steps: Count = 40
    redraw_every: Count = option(0, on="steps")
    """Steps after which w is redrawn within an episode; 0 for never."""

    def __check_init__(self):
        super().__check_init__()  # each option alone, before those that go together
        trains = self.novelty > 0 or self.successor_trains == "all"
        require(trains, "successor_trains must be all where there are no novelty features.")

    @property
    def schedule(self) -> Schedule:
        return dataclasses.replace(super().schedule, redraw_every=self.redraw_every)

    def init(self, spec: EnvSpec, key: PRNG) -> State:
        """Return N(0, θI), and tables with novelty features or a bounded network."""
        prior = Posterior.prior(self.features, self.theta, self.beta, self.zeta)
        name = "novelty" if self.tables(spec) else "random_features"
        given, most = getattr(self, name), self.features - 1
        require(given <= most, f"{name} must be from 0 to {most}, not {given}.")
        if self.tables(spec):
            rest = (0.0 if self.novelty else 1.0,) * (self.features - self.novelty)
            table = partial(TabularSuccessors.create, psi_init=(1.0,) * self.novelty + rest)
            table = partial(table, psi_only=self.novelty, psi_only_eps=self.novelty_eps)
            table = table(spec, key, learning_rate=self.learning_rate, eps=self.value_eps)
            trained = self.novelty if self.successor_trains == "novelty" else None
            return SUState(Novelty(table, self.novelty, self.novelty_step, trained), prior)
        net = partial(DeepSuccessors.create, features=self.features, hidden=self.hidden)
        net = partial(net, random_features=self.random_features, random_scale=self.random_scale)
        net = partial(net, adam=self.adam(self.value_eps), target_every=self.target_every)
        torso: Any = self.torso
        net = net(spec, key, torso=torso, depth=self.depth)
        return SUState(Bounded(net, jnp.zeros(2), self.discount), prior)

    def reference(self) -> ReferencePolicy:
        return Optimistic() if self.policy == "optimistic" else Joint(self.policy_samples)

    def objective(self) -> Objective:
        """Return equation 4 with a weight on the Q loss."""
        return Weighted(self.q_weight, self.q_per_w, self.q_trains_w)

    def observe(self, state: State, transitions: Transition, mask: Mask) -> State:
        """Update Λ, and the range of rewards that bounds Q."""
        state = super().observe(state, transitions, mask)
        return SUState(state.model.widen(transitions.reward, mask), state.posterior)

    def targets(self, state: State, batch: Batch, key: PRNG) -> Targets:
        """Return y_SF and y_Q, bounded; over several steps y_SF has the φ in between too."""
        model = state.model
        psi = model.target_psi(batch.next_obs)
        q = jnp.sum(psi * model.target_w, axis=-1)
        legal_q = allowed(q, batch.next_legal)
        pi = self.reference()(state.posterior, psi, legal_q, key)
        next_q = jnp.max(legal_q, axis=1)
        if self.q_target == "double":
            choosing = allowed(model.psi(batch.next_obs) @ model.w, batch.next_legal)
            chosen = jnp.argmax(choosing, axis=1, keepdims=True)
            next_q = jnp.take_along_axis(q, chosen, axis=1)[:, 0]
        ahead = bootstrap_factor(batch, self.discount)
        next_psi = ahead[:, None] * jnp.sum(pi[:, :, None] * psi, axis=1)
        if (trail := batch.trail) is not None:
            if self.between == "one":
                trail = one_step(trail, jax.random.fold_in(key, 1))
            phi = model.phi(trail.obs, trail.action)
            next_psi = next_psi + jnp.sum(trail.discount[:, :, None] * phi, axis=1)
        return Targets(next_psi, ahead * model.clip_q(next_q))


def one_step(trail: Trail, key: PRNG) -> Trail:
    """Draw one step of each trail in proportion to its discount; it gets the discounts of all."""
    chosen = jax.random.categorical(key, jnp.log(trail.discount))[:, None]
    at = jnp.arange(len(chosen))[:, None]
    total = jnp.sum(trail.discount, axis=1, keepdims=True)  # 0 where the first step was the last
    return Trail(trail.obs[at, chosen], trail.action[at, chosen], total, trail.reward)
