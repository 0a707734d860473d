"""Every agent by name. A new agent is one file and one line here."""

from collections.abc import Callable, Mapping
from typing import Any

from surveyor.agents.base import Agent
from surveyor.agents.bdqn import BDQN
from surveyor.agents.bootdqn import BootDQN
from surveyor.agents.dqn import DQN
from surveyor.agents.ideal import IdealSU
from surveyor.agents.psrl import PSRL
from surveyor.agents.su import SU
from surveyor.agents.ube import UBE
from surveyor.agents.uniform import Uniform
from surveyor.errors import SurveyorError, unknown

REGISTRY: dict[str, type[Agent]] = {
    "su": SU,
    "ideal-su": IdealSU,
    "bootdqn": BootDQN,
    "ube": UBE,
    "bdqn": BDQN,
    "dqn": DQN,
    "psrl": PSRL,
    "uniform": Uniform,
}

DETERMINISTIC = ("Tree", "TiedTree", "Chain")

PRESETS: dict[tuple[str, str], Callable[[], Agent]] = {
    ("su", "Tree"): SU.tree,
    ("su", "TiedTree"): SU.tree,
    ("su", "Chain"): SU.chain,
    ("bootdqn", "Chain"): BootDQN.chain,
    **{("psrl", family): PSRL.deterministic for family in DETERMINISTIC},
    **{("ideal-su", family): IdealSU.deterministic for family in DETERMINISTIC},
}
"""Which preset an agent takes on an environment family, where its defaults are not meant."""


def named(name: str) -> type[Agent]:
    """The agent's class."""
    if name not in REGISTRY:
        raise unknown("agent", name, REGISTRY)
    return REGISTRY[name]


def name_of(agent: Agent) -> str:
    """The name that an agent is registered under."""
    for name, kind in REGISTRY.items():
        if type(agent) is kind:
            return name
    raise SurveyorError(f"{type(agent).__name__} is not in the registry of agents.")


def preset(name: str, env: str) -> Agent:
    """The agent as it is meant to be used on this environment."""
    maker = PRESETS.get((name, env.partition("-")[0]))
    return make(name, {}) if maker is None else maker()


def make(name: str, hyperparameters: Mapping[str, Any]) -> Agent:
    """An agent from its name and its hyperparameters; those left out take their defaults."""
    kind = named(name)
    try:
        return kind(**hyperparameters)
    except TypeError:
        raise SurveyorError(
            f"The agent '{name}' of this version of surveyor has other hyperparameters than these."
        ) from None


__all__ = ["PRESETS", "REGISTRY", "Agent", "make", "name_of", "named", "preset"]
