"""What the commands can be told; the texts are what `--help` prints."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, arg

from surveyor.agents.base import Agent


@dataclasses.dataclass(frozen=True)
class Train:
    """Train an agent on an environment, until it is solved or the budget is spent."""

    env: Positional[str]
    """The environment: Tree-<L>, TiedTree-<L> or Chain-<L>, such as Tree-100; MinAtar/<Game>;
    ALE/<Game>; or any Gymnasium id, such as CartPole-v1 or my_package:MyEnv-v0."""
    hyperparameters: Annotated[Agent, arg(name="agent")]
    agent: str = "su"
    """The agent; `surveyor list agents` names them. Its options are below, with the defaults that
    are meant for the environment."""
    preset: str | None = None
    """Take these defaults of the agent instead, such as paper_25x; `surveyor list presets` has
    them all."""
    episodes: int | None = None
    """How many training episodes at the most, on trees and chains. By default 5000, more on a long
    chain."""
    steps: int | None = None
    """How many steps of the environment, everywhere else. By default 1,000,000 on MinAtar and
    200,000 in Gymnasium."""
    frames: int | None = None
    """The same on Atari, where a step is four frames. By default 200,000,000, as in the paper."""
    protocol: str | None = None
    """On Atari: paper (no-op starts, a life lost ends an episode for learning; the default) or
    machado (sticky actions, all 18 actions)."""
    seed: int = 0
    """Decides the environment's hidden action mapping and all randomness of the training."""
    seeds: int = 1
    """Train this many seeds, counting up from --seed, on all cores."""
    keep_going: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Spend all episodes, even after the problem is solved."""
    out: Path = Path("runs")
    """Where the run folders go."""
    plot: Path | None = None
    """Write a picture of the (first) run's learning to this file."""
    no_beliefs: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Do not write down now and then what the agent believes, which `surveyor report` shows."""
    tensorboard: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Write the metrics for TensorBoard as well, into the run folder."""
    wandb: str | None = None
    """Send the metrics to this project of Weights & Biases as well."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the outcome as one JSON object, and nothing else on standard output."""


@dataclasses.dataclass(frozen=True)
class Resume:
    """Go on with a run, to the same result as if it had never stopped."""

    run: Positional[Path]
    """The run's folder."""
    hyperparameters: Annotated[Agent, arg(name="agent")]
    tensorboard: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Write the metrics from here on for TensorBoard as well, into the run folder."""
    wandb: str | None = None
    """Send the metrics from here on to this project of Weights & Biases as well."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the outcome as one JSON object on the last line."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Play episodes with the greedy policy of a run, on the environment it was trained on."""

    run: Positional[Path]
    """The run's folder."""
    episodes: int | None = None
    """How many episodes: by default 10, and on Atari 100, as in the paper."""
    video: Path | None = None
    """Write a film of one episode to this file, .mp4 or .gif, if the environment has pictures."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the outcome as one JSON object on the last line."""


@dataclasses.dataclass(frozen=True)
class List:
    """Say what there is."""

    what: Positional[str]
    """What to list: agents, envs or presets."""
