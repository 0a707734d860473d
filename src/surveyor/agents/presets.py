"""Every preset of every agent, as plain data: importing this module imports nothing heavy.

A preset has values for each kind of problem: tree, chain, minatar, atari, grid (worlds such as
MiniGrid's), classic (vectors and images of other environments) and numbered (other environments
with numbered states).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

Values = dict[str, Any]


class Preset(NamedTuple):
    """A named set of hyperparameters for each kind of problem that it is meant for."""

    source: str
    """Where the values come from."""
    values: Mapping[str, Values]
    """Hyperparameters by kind of problem; class defaults for the others."""


Presets = Mapping[str, Preset]
PROBLEMS = ("tree", "chain", "minatar", "atari", "grid", "classic", "numbered")


def _preset(source: str, **problems: Values) -> Preset:
    return Preset(source, problems)


def _without(values: Values, *names: str) -> Values:
    return {name: value for name, value in values.items() if name not in names}


MINATAR: Values = (
    {"discount": 0.99, "learning_rate": 2.5e-4, "hidden": 128, "target_every": 1_000}
    | {"batch_size": 32, "replay_capacity": 100_000}
    | {"train_every": 4, "gradient_steps": 1, "warmup": 5_000, "envs": 8}
)
"""Network, batch and replay of Young and Tian (2019). Ours: Adam, eight environments, and an update
for every four steps, where theirs has one for each."""

ATARI: Values = (
    {"discount": 0.99, "learning_rate": 5e-5, "hidden": 1024, "target_every": 2_500}
    | {"max_norm": 10.0, "batch_size": 32, "replay_capacity": 1_000_000}
    | {"train_every": 4, "gradient_steps": 1, "warmup": 100_000}
)
"""The paper's table 4; discount, replay and warm-up as in its released code. The target network
follows every 10,000 environment steps, which are 2,500 gradient steps."""

CLASSIC: Values = (
    {"discount": 0.99, "learning_rate": 1e-3, "hidden": 128, "target_every": 100}
    | {"batch_size": 64, "replay_capacity": 50_000}
    | {"train_every": 4, "gradient_steps": 2, "warmup": 1_000, "envs": 4}
)
"""Ours, for small problems with vectors as observations, such as MountainCar."""

GRID: Values = CLASSIC | {
    "discount": 0.97,
    "learning_rate": 5e-4,
    "hidden": 256,
    "replay_capacity": 200_000,
}
"""Ours, for worlds such as MiniGrid's. Where most actions do nothing, Q differs by 1 - γ of itself
between a good one and an idle one: with γ = 0.99 a network can hardly tell them apart."""

NUMBERED = _without(CLASSIC, "target_every", "hidden")
"""Ours, for other environments with numbered states, such as FrozenLake: tables have no target
network, and a wide hidden layer lets their Q values diverge."""

STEPS = {"minatar": MINATAR, "atari": ATARI, "grid": GRID, "classic": CLASSIC, "numbered": NUMBERED}

Q_LEARNERS: Presets = {"default": Preset("sizes and rates shared by all agents", STEPS)}

DQN: Presets = {
    "default": _preset(
        "double DQN; ε as in Young and Tian (2019) on MinAtar, van Hasselt et al. (2016) on Atari; "
        "returns over three steps on vectors and other images",
        minatar=MINATAR | {"double": True, "epsilon_end": 0.1, "epsilon_steps": 100_000},
        atari=ATARI | {"double": True, "epsilon_end": 0.01, "epsilon_steps": 1_000_000},
        grid=GRID | {"double": True, "n_step": 3},
        classic=CLASSIC | {"double": True, "n_step": 3},
        numbered=NUMBERED,
    )
}

BONUS: Presets = {
    "default": _preset(
        "those of dqn where it has one, ours elsewhere, with a bonus of 0.1 for what is new",
        tree={},
        chain={"discount": 0.99, "gradient_steps": 40},
        minatar=DQN["default"].values["minatar"] | {"epsilon_end": 0.01},
        atari=DQN["default"].values["atari"],
        grid=DQN["default"].values["grid"] | {"epsilon_end": 0.01},
        classic=DQN["default"].values["classic"] | {"epsilon_end": 0.01},
        numbered=NUMBERED,
    )
}

_ALL_HEADS: Values = {"bootstrap": 1.0, "trained": "all"}
BOOTDQN: Presets = {
    "default": _preset(
        "the paper's table 2 (1x) on trees; ours elsewhere, after Osband et al. (2016, 2018)",
        tree={},
        chain={"ensemble": 20, "prior_weight": 10.0, "bootstrap": 0.5, "trained": "all"}
        | {"discount": 0.99, "gradient_steps": 40},
        minatar=MINATAR | _ALL_HEADS | {"prior_weight": 1.0},
        atari=ATARI | _ALL_HEADS | {"prior_weight": 0.0},
        grid=GRID | _ALL_HEADS | {"prior_weight": 3.0},
        classic=CLASSIC | _ALL_HEADS | {"prior_weight": 3.0},
        numbered=NUMBERED,
    ),
    "paper_1x": _preset("table 2, B+P 1x as printed; γ = 1 as released", tree={}),
    "paper_25x": _preset(
        "table 2, B+P 25x as printed; γ = 1 as released",
        tree={"prior_weight": 0.0, "bootstrap": 1.0, "gradient_steps": 250},
    ),
    "tree_25x": _preset(
        "table 2, B+P 25x with a prior weight of 10, which is in the paper's grid; with the "
        "printed 0 all heads agree before the goal is found",
        tree={"prior_weight": 10.0, "bootstrap": 1.0, "gradient_steps": 250},
    ),
    "released_1x": _preset(
        "the released code's B+P 1x", tree={"prior_weight": 0.0, "bootstrap": 0.5, "hidden": 50}
    ),
    "released_25x": _preset(
        "the released code's B+P 25x",
        tree={"prior_weight": 0.0, "bootstrap": 1.0, "hidden": 25, "gradient_steps": 250},
    ),
}

HYPERAGENT: Presets = {
    "default": _preset(
        "network and updates of Li et al. (2024) on vectors and pictures such as DeepSea's; the "
        "sizes and rates of all agents here on MinAtar, Atari and tables",
        tree={"discount": 1.0, "hidden": 20, "batch_size": 100},
        chain={"gradient_steps": 40, "hidden": 20, "batch_size": 100},
        minatar=MINATAR,
        atari=ATARI,
        grid=GRID,
        classic={"target_every": 4, "replay_capacity": 1_000_000}
        | {"train_every": 1, "gradient_steps": 1, "warmup": 128},
        numbered=NUMBERED | {"hidden": 20},
    ),
}

DETERMINISTIC: Presets = {
    "default": _preset(
        "one successor per state and action on trees and chains, which are deterministic",
        tree={"successors": 1},
        chain={"successors": 1},
    )
}

_TEXT_NETWORK: Values = {"beta": 1e-3, "zeta": 1 - 1e-5, "features": 64, "psi_init": 0.0}
_RELEASED: Values = (
    {"beta": 1.0, "discount": 1.0, "layers": "two", "normalise": "none", "loss": "smooth_l1"}
    | {"successor_trains_phi": False, "q_target": "max"}
    | {"policy": "marginal", "policy_scale": 1e-2}
)
_RELEASED_NETWORK: Values = (
    {"theta": 1e-6, "beta": 1e-6, "features": 64, "psi_init": 0.0}
    | {"normalise": "together", "loss": "smooth_l1", "successor_trains_phi": False}
    | {"q_target": "max", "redraw_every": 250}
)
# The paper plays one environment at a time.
_NETWORKS = {name: _without(STEPS[name], "envs") for name in STEPS if name != "numbered"}
_NUMBERED = _without(NUMBERED, "envs") | {"gradient_steps": 4}

SU: Presets = {
    "released": _preset(
        "the authors' released code; off the paper's problems its Atari or chain settings with "
        "the sizes and rates that all agents here share",
        tree=_RELEASED
        | {"theta": 1e-6, "features": 50, "policy_scale": 1e-3, "gradient_steps": 10},
        chain=_RELEASED,
        **{name: _RELEASED_NETWORK | sizes for name, sizes in _NETWORKS.items()},
        numbered=_RELEASED | _NUMBERED,
    ),
    "text": _preset(
        "the paper's text, tables 2 to 4, which do not reproduce its figures; where it is silent, "
        "and off the paper's problems, as released",
        tree={"theta": 1e4, "beta": 1e-3, "discount": 1.0, "gradient_steps": 10},
        chain={},
        **{name: _TEXT_NETWORK | sizes for name, sizes in _NETWORKS.items()},
        numbered=_NUMBERED,
    ),
}

_PLUS_PAPER: Values = {"learning_rate": 0.8, "settling": 0.0, "replay": "recent-and-best(10, 20)"}
_PLUS_PAPER |= {"replay_capacity": 1_000_000}
_PLUS_VECTORS: Values = {"n_step": 3, "warmup": 64, "replay_capacity": 200_000}
SU_PLUS: Presets = {
    "default": _preset(
        "sizes and rates only; trees and chains, where nothing is left to chance, do not settle",
        tree=_PLUS_PAPER | {"gradient_steps": 40},
        chain=_PLUS_PAPER | {"gradient_steps": 100, "discount": 0.995},
        minatar=MINATAR | {"learning_rate": 5e-4},
        atari=ATARI,
        grid=GRID | _PLUS_VECTORS | {"learning_rate": 1e-3, "target_every": 400},
        classic=CLASSIC | _PLUS_VECTORS,
        numbered=NUMBERED
        | {"learning_rate": 0.2, "gradient_steps": 4, "warmup": 0, "replay_capacity": 1_000_000},
    )
}
