"""Every agent by name. A new agent is one file and one line here; nothing heavy is imported."""

import dataclasses
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surveyor.agents import presets
from surveyor.agents.presets import Presets
from surveyor.errors import SurveyorError, unknown

if TYPE_CHECKING:
    from surveyor.agents.base import Agent


@dataclasses.dataclass(frozen=True)
class Entry:
    """An agent as lists, the command line and run folders know it."""

    name: str
    """The name on the command line and in run folders."""
    title: str
    """The name in tables and figures."""
    target: "str | type[Agent]"
    """The class, or `module:Class` to import when it is needed."""
    summary: str
    presets: Presets = dataclasses.field(default_factory=dict)
    """Named sets of hyperparameters; the first is the default."""

    def load(self) -> "type[Agent]":
        """Return the class."""
        return pkgutil.resolve_name(self.target) if isinstance(self.target, str) else self.target

    def values(self, problem: str, preset: str | None = None) -> dict[str, Any]:
        """Return the hyperparameters of a preset on a kind of problem; none on the problem ''."""
        if problem and problem not in presets.PROBLEMS:
            raise unknown("kind of problem", problem, presets.PROBLEMS)
        if preset is None:
            return next((one.values for one in self.presets.values()), {}).get(problem, {})
        if preset not in self.presets:
            raise unknown(f"preset of {self.name}", preset, self.presets)
        known = self.presets[preset].values
        if problem not in known:
            raise SurveyorError(
                f"The preset '{preset}' of {self.name} is for {', '.join(known)}, not {problem}."
            )
        return known[problem]


ENTRIES = (
    Entry("su-plus", "SU+", "surveyor.agents.su_plus:SUPlus",
          "SU+, this library's improvement of Successor Uncertainties.", presets.SU_PLUS),
    Entry("su", "SU", "surveyor.agents.su:SU",
          "Successor Uncertainties, algorithm 1 of the paper (Janz, Hron et al. 2019).",
          presets.SU),
    Entry("ideal-su", "Ideal SU", "surveyor.agents.ideal_su:IdealSU",
          "Idealised SU: the exact model of the paper's section 4.", presets.DETERMINISTIC),
    Entry("bootdqn", "Bootstrapped DQN", "surveyor.agents.bootdqn:BootDQN",
          "Bootstrapped DQN with additive priors (Osband et al. 2016, 2018).", presets.BOOTDQN),
    Entry("ube", "UBE", "surveyor.agents.ube:UBE",
          "The Uncertainty Bellman Equation (O'Donoghue et al. 2018).", presets.Q_LEARNERS),
    Entry("bdqn", "BDQN", "surveyor.agents.bdqn:BDQN",
          "Bayesian DQN: linear regression on the last layer (Azizzadenesheli et al. 2018).",
          presets.Q_LEARNERS),
    Entry("dqn", "DQN", "surveyor.agents.dqn:DQN",
          "DQN with ε-greedy exploration (Mnih et al. 2015), double if asked.", presets.DQN),
    Entry("psrl", "PSRL", "surveyor.agents.psrl:PSRL",
          "Posterior sampling of a tabular MDP (Osband et al. 2013).", presets.DETERMINISTIC),
    Entry("uniform", "Uniform", "surveyor.agents.uniform:Uniform",
          "Uniformly random actions."),
)  # fmt: skip
REGISTRY: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
DEFAULT = ENTRIES[0].name
"""The agent that `surveyor train` takes unless told otherwise."""


def register(entry: Entry) -> None:
    """Add an agent of a user's package.

    **Arguments:**

    - `entry`: its name, which must not be taken, its class, a summary and its presets if any.
    """
    if REGISTRY.get(entry.name, entry).target != entry.target:
        raise SurveyorError(f"There is an agent '{entry.name}' already; choose another name.")
    REGISTRY[entry.name] = entry


def find(name: str) -> Entry:
    """Return the agent of this name; raise `SurveyorError` with the nearest one otherwise."""
    if name not in REGISTRY:
        titles = {entry.title: entry.name for entry in REGISTRY.values()}
        raise unknown("agent", name, REGISTRY, titles)
    return REGISTRY[name]


def entry_of(agent: "Agent | type[Agent]") -> Entry:
    """Return the entry of an agent or of its class."""
    kind = agent if isinstance(agent, type) else type(agent)
    path = f"{kind.__module__}:{kind.__qualname__}"
    for entry in REGISTRY.values():
        if entry.target in (path, kind):
            return entry
    raise SurveyorError(
        f"{kind.__name__} is not a registered agent; register it with surveyor.agents.register."
    )


def name_of(agent: "Agent") -> str:
    """Return the name that an agent is registered under."""
    return entry_of(agent).name


def make(name: str, hyperparameters: Mapping[str, Any]) -> "Agent":
    """Return an agent.

    **Arguments:**

    - `name`: the name that it is registered under.
    - `hyperparameters`: values of its options; the others take their defaults.
    """
    kind = find(name).load()
    try:
        return kind(**hyperparameters)
    except TypeError:
        raise SurveyorError(
            f"The agent '{name}' of this version of surveyor has other hyperparameters than these."
        ) from None


def preset(name: str, problem: str, chosen: str | None = None) -> "Agent":
    """Return a named agent with the hyperparameters for a kind of problem.

    **Arguments:**

    - `name`: the agent.
    - `problem`: the kind of problem, such as tree; an environment's family knows it.
    - `chosen`: one of the agent's presets; its default one if None.
    """
    return make(name, find(name).values(problem, chosen))
