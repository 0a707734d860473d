"""Sweep specifications: TOML files that list runs.

    seeds = 3                                  # or a list of seeds
    envs = ["MinAtar/Breakout", "MinAtar/Asterix"]
    steps = 1_000_000                          # or episodes, or frames (Atari); else the default

    [[agents]]
    agent = "su"

    [[agents]]
    agent = "dqn"
    label = "DQN, other rates"                 # its name in plots
    set = { hidden = 256 }                     # one value each
    grid = { learning_rate = [1e-4, 5e-4] }    # every combination of these

Keys at the top hold for every agent that does not have its own.
"""

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from surveyor import agents
from surveyor.agents.base import Agent
from surveyor.envs import families
from surveyor.errors import SurveyorError, require, unknown
from surveyor.runs import api
from surveyor.runs.config import Config
from surveyor.sweeps.text import read_toml

BUDGETS = ("episodes", "steps", "frames")
SEEN = ("protocol", "frame_stack", "scale")
"""Keys that decide how the environment is played and seen."""
COMMON = ("envs", "seeds", *BUDGETS, *SEEN, "keep_going")
"""Keys for the whole specification or for one agent."""
OWN = ("agent", "label", "preset", "set", "grid")
"""Keys for one agent."""


class Planned(NamedTuple):
    """One run of a sweep."""

    config: Config
    label: str
    """Name of its agent in plots."""


def read(path: Path) -> list[Planned]:
    """Return the runs of a specification, in its order; raise `SurveyorError` if it is wrong."""
    return plan(read_toml(path), str(path))


def plan(content: dict[str, Any], name: str) -> list[Planned]:
    """Return the runs of a parsed specification, whose `name` begins every message."""
    try:
        _check_keys(content, (*COMMON, "agents"))
        entries = content.get("agents")
        if not isinstance(entries, list) or not entries:
            raise SurveyorError("it names no agents: at least one [[agents]], in double brackets.")
        shared = {key: value for key, value in content.items() if key != "agents"}
        found = [run for entry in entries for run in _runs(_merged(shared, entry))]
        _check_used(content, found)
        _check_distinct(found)
        return found
    except SurveyorError as error:
        raise SurveyorError(f"{name}: {error}") from None


def _check_distinct(found: list[Planned]) -> None:
    """Raise `SurveyorError` if a run is listed twice, or two agents have the same label."""
    labels: dict[str, str] = {}
    names: dict[tuple[str, str, int], str] = {}
    for config, label in found:
        name = config.name
        if name in labels:
            said = f"as '{labels[name]}' and as '{label}'"
            raise SurveyorError(f"it asks for the run {name} twice, {said}.")
        labels[name] = label
        if names.setdefault((label, config.env, config.seed), name) != name:
            said = f"two agents on {config.env} are called '{label}' and differ"
            raise SurveyorError(f"{said}; give one of them a label.")


def _check_used(content: dict[str, Any], found: list[Planned]) -> None:
    """Raise `SurveyorError` if a key has no effect on any environment of the specification."""
    kinds = [run.config.family for run in found]
    by_episodes = (any(kind.by_episodes for kind in kinds), "is learnt by episodes")
    uses_steps = (any(not kind.by_episodes for kind in kinds), "is learnt by steps")
    uses = {
        "episodes": by_episodes,
        "keep_going": by_episodes,
        "steps": uses_steps,
        "frames": (any(kind.unit == "frames" for kind in kinds), "is counted in frames"),
        **dict.fromkeys(("frame_stack", "scale"), uses_steps),
        "protocol": (any(kind.protocols for kind in kinds), "has protocols"),
    }
    for key, (used, what) in uses.items():
        given = any(key in entry for entry in (content, *content["agents"]))
        require(used or not given, f"{key} is given, but no environment {what}.")


def _merged(shared: dict[str, Any], entry: Any) -> dict[str, Any]:
    """Return the keys of one agent; its steps or frames replace either at the top."""
    if not isinstance(entry, dict) or "agent" not in entry:
        raise SurveyorError('each of [[agents]] needs an agent, such as agent = "su".')
    _check_keys(entry, (*COMMON, *OWN))
    for key in ("agent", "label", "preset"):
        text = entry.get(key, "-")
        require(isinstance(text, str) and text.strip() != "", f"{key} takes a text, not {text!r}.")
    agents.find(entry["agent"])
    if "steps" in entry or "frames" in entry:
        shared = {key: value for key, value in shared.items() if key not in ("steps", "frames")}
    return {**shared, **entry}


def _check_keys(content: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in content:
        if key not in known:
            raise unknown("key", key, known)


def _runs(entry: dict[str, Any]) -> Iterator[Planned]:
    seeds, envs = entry.get("seeds", 1), entry.get("envs", [])
    seeds = list(range(seeds)) if type(seeds) is int else seeds
    fits = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
    require(fits and seeds != [], "seeds takes a number of seeds or a list of them.")
    names = isinstance(envs, list) and all(isinstance(env, str) for env in envs)
    require(names, f"envs takes a list of names, not {envs!r}.")
    require(envs != [], f"it names no environments for {entry['agent']}: envs = [...].")
    require(type(entry.get("keep_going", False)) is bool, "keep_going takes true or false.")
    preset = {"preset": entry["preset"]} if "preset" in entry else {}
    for point in _grid(entry):
        changes = {**_table(entry, "set"), **point}
        # An agent without a label is called by the settings that distinguish it.
        apart = point if "label" in entry else {**preset, **changes}
        said = [f"{key} {value}" for key, value in apart.items()]
        label = ", ".join([entry.get("label", agents.find(entry["agent"]).title), *said])
        for env, seed in itertools.product(envs, seeds):
            yield Planned(_config(entry, env, seed, changes), label)


def _config(entry: dict[str, Any], env: str, seed: int, changes: dict[str, Any]) -> Config:
    family = families.find(env)
    # A budget of another kind is for other environments of the same sweep.
    usable = {"episodes": ("episodes",), "steps": ("steps",), "frames": ("steps", "frames")}
    given = {key: _whole(entry, key) for key in BUDGETS if key in entry}
    budget = {key: given[key] for key in usable[family.unit] if key in given}
    both = f"{env} has both steps and frames; a step is {family.frames_per_step} frames."
    require(len(budget) < 2, both)
    protocol = entry.get("protocol") if family.protocols else None
    require(isinstance(protocol, str | None), f"protocol takes a text, not {protocol!r}.")
    solved = not (family.by_episodes and entry.get("keep_going", False))
    options = {"seed": seed, "stop_when_solved": solved, "protocol": protocol}
    frames, scale = entry.get("frame_stack", 0), entry.get("scale", True)
    require(type(frames) is int, f"frame_stack takes a whole number, not {frames!r}.")
    require(type(scale) is bool, "scale takes true or false.")
    options |= {} if family.by_episodes else {"frame_stack": frames, "scale": scale}
    agent = _agent(entry, env, changes)
    return api.configure(agent, env, **budget, **options, given=changes)


def _whole(entry: dict[str, Any], key: str) -> int:
    """Return a budget, a whole number that may be written as 1e6."""
    value = entry[key]
    whole = type(value) in (int, float) and value % 1 == 0
    require(whole, f"{key} takes a whole number, not {value!r}.")
    require(value >= 1, f"{key} must be at least 1, not {value}.")
    return int(value)


def _agent(entry: dict[str, Any], env: str, changes: dict[str, Any]) -> Agent:
    base = agents.preset(entry["agent"], families.find(env).preset(env), entry.get("preset"))
    fields = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    fitting = dict(changes)
    for key, value in changes.items():
        if key not in fields:
            raise unknown("hyperparameter", key, fields)
        kind = type(fields[key])
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        fits = fits and isinstance(value, bool) == (kind is bool)
        require(fits or fields[key] is None, f"{key} takes {kind.__name__}, not {value!r}.")
        try:
            fitting[key] = float(value) if kind is float else value
        except OverflowError:
            raise SurveyorError(f"{key} is too large.") from None
    return dataclasses.replace(base, **fitting)


def _grid(entry: dict[str, Any]) -> list[dict[str, Any]]:
    grid = _table(entry, "grid")
    require(grid != {} or "grid" not in entry, f"the grid of {entry['agent']} is empty.")
    for key, values in grid.items():
        require(key not in _table(entry, "set"), f"{key} is both in set and in grid.")
        require(isinstance(values, list), f"the grid of {key} takes a list, not {values!r}.")
        require(values != [], f"the grid of {key} is empty; it needs a list of values.")
    points = itertools.product(*grid.values())
    return [dict(zip(grid, point, strict=True)) for point in points]


def _table(entry: dict[str, Any], key: str) -> dict[str, Any]:
    found = entry.get(key, {})
    require(isinstance(found, dict), f"{key} takes a table, such as {{ theta = 1.0 }}.")
    return found
