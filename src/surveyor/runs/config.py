"""The configuration of a run."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from surveyor import agents, plugins
from surveyor.agents import options
from surveyor.agents.base import Agent
from surveyor.agents.foreign import stand_in
from surveyor.envs import families
from surveyor.envs.base import Environment
from surveyor.envs.families import Family, Source
from surveyor.errors import SurveyorError, require
from surveyor.models.own import Own
from surveyor.training.runner import Task

RENAMED = (
    ", whose agent 'su' is gone, or today's 'su' if it had a preset of the paper's "
    "text or released code"
)
OTHER = "The agent that was given is not the one that this run was trained with."


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that decides a run's result; equal configurations give equal bits."""

    env: str
    agent: Agent
    seed: int
    episodes: int | None = None
    """Budget in episodes, for environments that are learnt by episodes."""
    stop_when_solved: bool = True
    steps: int | None = None
    """Budget in steps, for all other environments."""
    protocol: str | None = None
    """Protocol of the environment; its family's default if None."""
    frame_stack: int = 0
    """Frames that an observation stacks; 0 for as many as the environment has."""
    scale: bool = True
    """True if observations are scaled where they need it."""
    described: dict[str, Any] | None = dataclasses.field(default=None, compare=False, repr=False)
    """Hyperparameters as JSON, if a folder has them and the agent was given with its own module."""
    source: Any = dataclasses.field(default=None, compare=False, repr=False)
    """The environment itself, if it was passed as an object and has no name to make it from."""

    def __post_init__(self):
        accepted = 0 <= self.seed < 2**32  # by every random generator involved
        require(accepted, f"seed must be between 0 and 2^32 - 1, not {self.seed}.")
        stack = self.frame_stack
        require(stack >= 0 and stack != 1, f"frame_stack must be 0 or at least 2, not {stack}.")
        for name, value in (("episodes", self.episodes), ("steps", self.steps)):
            require(value is None or value >= 1, f"{name} must be at least 1, not {value}.")

    @property
    def family(self) -> Family:
        """Family of the environment."""
        return families.of(self.env if self.source is None else self.source)

    @property
    def budget(self) -> int:
        """Episodes or steps to train for."""
        return (self.episodes if self.steps is None else self.steps) or 0

    @property
    def unit(self) -> str:
        """Unit in which people count its training: episodes, steps or frames."""
        return "episodes" if self.steps is None else self.family.unit

    @property
    def task(self) -> Task:
        """The part of the configuration that a runner needs."""
        frames = self.family.frames_per_step
        counts = (self.budget, self.stop_when_solved, frames, self.scale, self.frame_stack)
        return Task(self.env, self.agent, self.seed, *counts)

    def make(self) -> Source:
        """Return the environment for a runner; raise if its family describes it wrongly."""
        family, source = self.family, self._source()
        if isinstance(source, Environment) != family.by_episodes:
            raise SurveyorError(
                f"{self.env} is counted in {family.unit} by its family {family.name}, but "
                "environments learnt by episodes, and only those, are counted in episodes."
            )
        spec = getattr(source, "spec", None)
        said = f"Whether {self.env} has numbered states is not what its family {family.name} says."
        require(spec is None or spec.tabular == family.numbered(self.env), said)
        return source

    def _source(self) -> Source:
        try:
            return self.family.make(self.env, self.protocol)
        except SurveyorError as error:
            if self.source is not None or not str(error).startswith("There is no environment"):
                raise
            more = "If it was passed as an object, give it again: surveyor.load(path, env=…)."
            raise SurveyorError(f"{error} {more}") from None

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        agent = agents.name_of(self.agent)
        env = re.sub(r"[^A-Za-z0-9.]+", "-", self.env)[:80]  # the hash covers all of it
        return f"{env}-{agent}-s{self.seed}-{self.digest()[:8]}"

    def digest(self) -> str:
        """Return a hash of all that decides the result."""
        return hashlib.sha256(json.dumps(self._deciding(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the content of config.json: what decides the result, versions and commit."""
        path = plugins.source_of(type(self.agent))  # only for people: it is never imported
        more = {"class": path, "versions": versions(), "commit": commit()}
        return {**self._deciding(), **more}

    @classmethod
    def from_json(
        cls, content: dict[str, Any], agent: Agent | None = None, *, any_agent: bool = False
    ) -> "Config":
        """Return the configuration that `to_json` wrote; raise `SurveyorError` if 0.1 wrote it.

        `agent` is the agent, if a module of the user's own is among its hyperparameters. With
        `any_agent`, one that cannot be made here is replaced by a stand-in that cannot act.
        """
        if not isinstance(content["env"], str) or type(content["seed"]) is not int:
            raise ValueError("env or seed have the wrong type")
        version = str(content.get("versions", {}).get("surveyor", ""))
        if version.split(".")[:2] == ["0", "1"]:  # its agents had other hyperparameters
            name = f"{content['env']} {content['agent']} seed {content['seed']}"
            renamed = RENAMED if content["agent"] == "su" else ""
            raise SurveyorError(
                f"'{name}' was trained by surveyor {version}{renamed}; this version can show its "
                "results but not load or continue it: train it again."
            )
        made = _agent(content, agent, any_agent)
        names = ("episodes", "stop_when_solved", "steps", "protocol", "frame_stack", "scale")
        rest = {name: content[name] for name in names if name in content}
        rest |= {} if agent is None else {"described": content["hyperparameters"]}
        if not isinstance(rest.get("steps", rest.get("episodes")), int):
            raise ValueError("the budget is missing")
        return cls(content["env"], made, content["seed"], **rest)

    def _deciding(self) -> dict[str, Any]:
        by_episodes = {"episodes": self.episodes, "stop_when_solved": self.stop_when_solved}
        more = {"protocol": self.protocol} if self.protocol is not None else {}
        more |= {"frame_stack": self.frame_stack} if self.frame_stack else {}
        more |= {} if self.scale else {"scale": False}
        return {
            "env": self.env,
            "agent": agents.name_of(self.agent),
            "hyperparameters": self.described or describe(self.agent),
            "seed": self.seed,
            **(by_episodes if self.steps is None else {"steps": self.steps, **more}),
        }


def describe(agent: Agent) -> dict[str, Any]:
    """Return the hyperparameters of an agent as JSON."""
    described = options.values(agent).items()
    return {name: v.description if isinstance(v, Own) else v for name, v in described}


def _agent(content: dict[str, Any], given: Agent | None, any_agent: bool) -> Agent:
    """Return the agent of a config.json; nothing is imported because a run folder names it."""
    name, path, values = content["agent"], str(content.get("class", "")), content["hyperparameters"]
    if given is not None:
        require(_fits(given, name, values), OTHER)
        return given
    own = next((key for key, value in values.items() if isinstance(value, dict)), None)
    known = not path or agents.lookup(name) is not None
    if known and own is None:
        return agents.make(name, values)
    if any_agent:
        return stand_in(name, path, values)
    run, module = f"{content['env']} {name} seed {content['seed']}", path.partition(":")[0]
    if known:
        kind = f"agent={agents.find(name).load().__name__}({own}=…)"
        said = f"The {own} of '{run}' is a module of its own, {values[own].get('module')}"
        raise SurveyorError(f"{said}: give the agent with it, as in surveyor.load(path, {kind}).")
    advice = f"import its module first, on the command line with --import {module}."
    advice = "define its class first." if module == "__main__" else advice
    said = f"'{run}' was trained by the agent '{name}' ({path}), which is not known here"
    raise SurveyorError(f"{said}: {advice}")


def _fits(agent: Agent, name: str, values: dict[str, Any]) -> bool:
    """Return whether an agent has these hyperparameters, its own modules any weights."""
    mine = describe(agent)
    if agents.name_of(agent) != name or mine.keys() != values.keys():
        return False
    for key, value in mine.items():
        own = getattr(agent, key)
        same = own.same_structure(values[key]) if isinstance(own, Own) else value == values[key]
        if not same:
            return False
    return True


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of all packages that decide a result."""
    packages = ("surveyor", "jax", "jaxlib", "equinox", "optax", "numpy")
    return {package: importlib.metadata.version(package) for package in packages}


@functools.cache
def commit() -> str | None:
    """Return the git commit of surveyor's source, or None outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
