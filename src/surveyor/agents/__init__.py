"""Every agent by name. A new agent is one file and one line here."""

from collections.abc import Callable, Mapping
from typing import Any

from surveyor.agents import sources
from surveyor.agents.base import Agent
from surveyor.agents.bdqn import BDQN
from surveyor.agents.bootdqn import BootDQN
from surveyor.agents.dqn import DQN
from surveyor.agents.ideal_su import IdealSU
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

STEPS = ("minatar", "atari", "classic", "numbered")
"""Presets of problems that are learnt by steps."""
DETERMINISTIC = ("tree", "chain")

PRESETS: dict[tuple[str, str], Callable[[], Agent]] = {
    ("su", "tree"): SU.tree,
    ("su", "chain"): SU.chain,
    ("bootdqn", "chain"): BootDQN.chain,
    **{("psrl", family): PSRL.deterministic for family in DETERMINISTIC},
    **{("ideal-su", family): IdealSU.deterministic for family in DETERMINISTIC},
    **{
        (name, preset): getattr(kind, preset)
        for name, kind in REGISTRY.items()
        for preset in STEPS
        if hasattr(kind, preset)
    },
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


def presets(name: str) -> dict[str, Callable[[], Agent]]:
    """The named sets of hyperparameters of an agent: its class methods, and the sources of SU."""
    kind = named(name)
    bases = [base for base in reversed(kind.mro()) if issubclass(base, Agent)]
    own = [
        key
        for base in bases
        for key, value in vars(base).items()
        if isinstance(value, classmethod) and not key.startswith("_")
    ]
    found: dict[str, Callable[[], Agent]] = {key: getattr(kind, key) for key in own}
    if kind is SU:
        makers = sources.text_tree, sources.text_chain, sources.text_atari
        makers += sources.released_tree, sources.released_chain, sources.released_atari
        found |= {maker.__name__: maker for maker in makers}
    return found


def preset(name: str, family: str, chosen: str | None = None) -> Agent:
    """The agent as it is meant to be used on this family of environments, or with the preset of
    this name."""
    if chosen is not None:
        known = presets(name)
        if chosen not in known:
            raise unknown(f"preset of {name}", chosen, known)
        return known[chosen]()
    maker = PRESETS.get((name, family))
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


__all__ = ["PRESETS", "REGISTRY", "Agent", "make", "name_of", "named", "preset", "presets"]
