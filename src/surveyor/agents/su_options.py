"""The options of Successor Uncertainties, with where each value comes from."""

from typing import Literal

from surveyor.agents import check
from surveyor.agents.learner import Learner
from surveyor.models.losses import Penalty, Reduction
from surveyor.models.networks import Layers


class SUOptions(Learner):
    """Where the paper's text and the released code differ, the choice is an option and its
    description says which source takes which side."""

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
    random_features: int = 0
    """Ours, on networks: how many of the features are waves in a random direction of the
    observation, never trained, different for each action. Features that learn from rewards tell
    nothing apart before there are any, and so no state from a new one; these do."""
    random_scale: float = 3.0
    """How many radians those waves turn on average over a distance of 1 in an observation."""
    layers: Layers = "one"
    """Layers of the φ network: one (paper) or two (released code)."""
    normalise: bool = True
    """Whether ‖φ‖ is made 1 (paper) or left as it comes (released code)."""
    normalise_together: bool = False
    """On networks: whether the features of all actions of a state have norm 1 together (released
    Atari code), in place of those of each action (paper)."""
    psi_relu: bool = False
    """On networks: whether ψ goes through a ReLU (paper's text and released Atari code), or is the
    sum ψ̄ + ψ̃ as it comes (the paper's appendix C.2)."""
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
    q_per_w: bool = False
    """Ours, for networks: whether the Q loss is divided by ‖ŵ‖², as long as that is above 0.01.
    What ψ learns from an error of Q is that error times ŵ. Where rewards are rare ŵ is small, and
    beside the successor loss the Q loss counts for nothing; so it counts the same everywhere."""
    q_trains_w: bool = False
    """Whether the Q loss also trains ŵ (both sources). Ours: ŵ learns from rewards alone, which
    stops it from running away with its own targets after the first success."""
    q_target: Literal["policy", "max", "double"] = "max"
    """Next action in the Q target: a' ~ π (paper), the best one under ŵ (released code), or the
    best one by the network that learns, valued by its target network (double Q learning)."""
    bound_targets: bool = True
    """Ours, on networks: whether the target of ψ is kept no longer than any discounted sum of
    features of norm 1, and that of Q within what the rewards so far can add up to."""
    between: Literal["all", "one"] = "all"
    """Over several steps (`n_step`): whether the target of ψ has φ of all the steps between, or of
    one of them, drawn at random, that stands for all (ours). Its mean is the same, and of a large
    network a gradient step over 10 steps then takes a third of the time."""
    policy: Literal["optimistic", "joint", "marginal"] = "optimistic"
    """The reference policy π that ψ predicts. joint: E[greedy policy of a sampled Q], from draws
    of w (paper). marginal: the same from independent draws of each action's Q (released code).
    optimistic, ours: greedy on mean plus standard deviation of Q, which keeps the weight in ψ of
    what is new; under E[greedy] it halves with every step that this lies ahead."""
    policy_samples: int = 20
    """Draws for E[greedy]: 20 in the released code; algorithm 1 takes one for each example."""
    policy_scale: float = 1.0
    """A factor on the deviation of Q in π: 1 (paper); the released code puts its β here."""
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
        check.positive(self, "theta", "beta", "q_weight", "policy_scale")
        check.positive(self, "value_eps", "novelty_eps")
        check.share(self, "zeta")
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
        check.positive(self, "random_scale")
        check.that(
            0 <= self.random_features < self.features - self.novelty,
            f"random_features must be from 0 to {self.features - self.novelty - 1}, "
            f"not {self.random_features}.",
        )
