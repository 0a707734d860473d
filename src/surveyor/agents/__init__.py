"""Every agent by name. A new agent is one file and one line here; nothing heavy is imported.

Agents of other packages are added by `register`, by entry points, by `import_modules`, or when they
are first used.
"""

import dataclasses
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from surveyor import plugins
from surveyor.agents import options, outline, presets
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

    def outline(self) -> Any:
        """Return a class with the same options, without importing JAX if that is possible."""
        target = self.target
        if isinstance(target, str) and target.startswith("surveyor."):
            return outline.outline(target)
        return self.load()

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
          "SU+, this library's own: samples of where an unmet reward may be.", presets.SU_PLUS),
    Entry("su", "SU", "surveyor.agents.su:SU",
          "Successor Uncertainties, algorithm 1 of the paper (Janz, Hron et al. 2019).",
          presets.SU),
    Entry("ideal-su", "Ideal SU", "surveyor.agents.ideal_su:IdealSU",
          "Idealised SU: the exact model of the paper's section 4.", presets.DETERMINISTIC),
    Entry("bootdqn", "Bootstrapped DQN", "surveyor.agents.bootdqn:BootDQN",
          "Bootstrapped DQN with additive priors (Osband et al. 2016, 2018).", presets.BOOTDQN),
    Entry("hyperagent", "HyperAgent", "surveyor.agents.hyperagent:HyperAgent",
          "HyperAgent: a linear hypermodel with an additive prior (Li et al. 2024).",
          presets.HYPERAGENT),
    Entry("ube", "UBE", "surveyor.agents.ube:UBE",
          "The Uncertainty Bellman Equation (O'Donoghue et al. 2018).", presets.Q_LEARNERS),
    Entry("bdqn", "BDQN", "surveyor.agents.bdqn:BDQN",
          "Bayesian DQN: linear regression on the last layer (Azizzadenesheli et al. 2018).",
          presets.Q_LEARNERS),
    Entry("dqn", "DQN", "surveyor.agents.dqn:DQN",
          "DQN with ε-greedy exploration (Mnih et al. 2015), double if asked.", presets.DQN),
    Entry("bonus", "Bonus DQN", "surveyor.agents.bonus:BonusDQN",
          "Double DQN with a bonus: visit counts on tables, RND on networks (Burda et al. 2018).",
          presets.BONUS),
    Entry("psrl", "PSRL", "surveyor.agents.psrl:PSRL",
          "Posterior sampling of a tabular MDP (Osband et al. 2013).", presets.DETERMINISTIC),
    Entry("uniform", "Uniform", "surveyor.agents.uniform:Uniform",
          "Uniformly random actions."),
)  # fmt: skip
REGISTRY: dict[str, Entry] = {entry.name: entry for entry in ENTRIES}
DEFAULT = ENTRIES[0].name
"""The agent that `surveyor train` takes unless told otherwise."""


ENTRY_POINTS = "surveyor.agents"
"""Entry point group of packages with agents; each is an `Entry` or an agent class."""
_pending = [ENTRY_POINTS]
"""Entry point groups that have not been read yet."""


def register(entry: Entry) -> None:
    """Add an agent of a user's package.

    **Arguments:**

    - `entry`: its name, which must not be taken, its class, a summary and its presets if any.
    """
    taken = REGISTRY.get(entry.name, entry).target
    if _path(taken) != _path(entry.target):  # a class may be defined again, in a notebook
        raise SurveyorError(
            f"There is an agent '{entry.name}' already, {_path(taken)}; choose another name for "
            f"{_path(entry.target)}."
        )
    REGISTRY[entry.name] = entry


def entries() -> list[Entry]:
    """Return every known agent, those of installed packages included."""
    if _pending:
        plugins.load_entry_points(_pending.pop(), _add)  # a plugin may look up agents itself
    return list(REGISTRY.values())


def lookup(name: str) -> Entry | None:
    """Return the agent of this name, or None; a class that was defined counts as known."""
    for entry in entries():
        if entry.name == name:
            return entry
    base = sys.modules.get("surveyor.agents.base")  # without it there is no other class
    for kind in reversed(_subclasses(base.Agent) if base is not None else []):
        present = kind.__module__ in sys.modules and not _is_internal(kind)
        if present and _derive(kind).name == name:
            return entry_of(kind)
    return None


def find(name: str) -> Entry:
    """Return the agent of this name; raise `SurveyorError` with the nearest one otherwise."""
    if (found := lookup(name)) is not None:
        return found
    known = {entry.title: entry.name for entry in entries()}
    raise unknown("agent", name, list(known.values()), known)


def entry_of(agent: "Agent | type[Agent]") -> Entry:
    """Return the entry of an agent or of its class, which is registered if it has none yet."""
    kind = agent if isinstance(agent, type) else type(agent)
    if (own := vars(kind).get("__entry__")) is not None:  # of an agent that is not known here
        return own
    for entry in entries():
        if entry.target is kind or entry.target == _path(kind):
            return entry
    entry = _derive(kind)
    register(entry)
    return entry


def import_modules(names: Iterable[str]) -> None:
    """Import modules, by name or .py file, and register the agents that are defined in them."""
    for name in names:
        module = plugins.import_module(name)
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                _register_if_agent(kind)


def _register_if_agent(kind: type) -> None:
    from surveyor.agents.base import Agent  # imports JAX

    if issubclass(kind, Agent) and not _is_internal(kind):
        entry_of(kind)


def _subclasses(kind: type) -> "list[type[Agent]]":
    direct = type.__subclasses__(kind)
    return [*direct, *(each for one in direct for each in _subclasses(one))]


def _is_internal(kind: type) -> bool:
    """Return whether a class is a base of agents, and no agent that is used itself."""
    return inspect.isabstract(kind) or kind.__name__.startswith("_") or "__entry__" in vars(kind)


def _derive(kind: "type[Agent]") -> Entry:
    """Return an entry for a class without one: MyAgent is called my-agent."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind.__name__)
    summary = (inspect.getdoc(kind) or kind.__name__).splitlines()[0]
    return Entry(words.replace("_", "-").lower(), kind.__name__, kind, summary)


def _add(found: Any) -> None:
    """Register the object of an entry point."""
    if not isinstance(found, Entry | type):
        raise SurveyorError(f"it is {type(found).__name__}, not an Entry or an agent class")
    register(found if isinstance(found, Entry) else _derive(found))


def _path(target: "str | type[Agent]") -> str:
    return target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"


def name_of(agent: "Agent") -> str:
    """Return the name that an agent is registered under."""
    return entry_of(agent).name


def make(name: str, hyperparameters: Mapping[str, Any]) -> "Agent":
    """Return an agent.

    **Arguments:**

    - `name`: the name that it is registered under.
    - `hyperparameters`: values of its options; the others take their defaults.
    """
    return _called(name, find(name).load(), hyperparameters)


def make_outline(name: str, hyperparameters: Mapping[str, Any]) -> Any:
    """Return the options of an agent as an object, checked one by one, without importing JAX."""
    found = _called(name, find(name).outline(), hyperparameters)
    options.require_valid(found)
    return found


def _called(name: str, kind: Any, hyperparameters: Mapping[str, Any]) -> Any:
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
