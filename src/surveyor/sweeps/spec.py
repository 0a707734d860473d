"""Sweep specifications: TOML files that list runs.

    seeds = 3                                  # or a list of seeds
    envs = ["MinAtar/Breakout", "MinAtar/Asterix"]
    steps = 1_000_000                          # or episodes, or frames (Atari); else the default

    [[agents]]
    agent = "su"

    [[agents]]
    agent = "dqn"
    label = "DQN, other rates"                 # its name in plots
    preset = "minatar"                         # else the default for the environment
    set = { hidden = 256 }                     # one value each
    grid = { learning_rate = [1e-4, 5e-4] }    # every combination of these

Keys at the top hold for every agent that does not have its own.
"""

import dataclasses
import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surveyor import agents
from surveyor.agents.base import Agent
from surveyor.envs import families
from surveyor.errors import SurveyorError, unknown
from surveyor.runs import api
from surveyor.runs.config import Config

BUDGETS = ("episodes", "steps", "frames")
"""Keys of a training budget."""
COMMON = ("envs", "seeds", *BUDGETS, "protocol", "keep_going")
"""Keys for the whole specification or for one agent."""
OWN = ("agent", "label", "preset", "set", "grid")
"""Keys for one agent."""


@dataclasses.dataclass(frozen=True)
class Planned:
    """One run of a sweep."""

    config: Config
    """The run's configuration."""
    label: str
    """Name of its agent in plots."""


def read(path: Path) -> list[Planned]:
    """Return the runs of a specification, in its order; raise `SurveyorError` if it is wrong."""
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SurveyorError(f"'{path}' cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SurveyorError(f"'{path}' is not TOML: {error}.") from None
    return plan(content, str(path))


def plan(content: dict[str, Any], name: str) -> list[Planned]:
    """Return the runs of a specification that is already parsed.

    **Arguments:**

    - `content`: the content of the TOML file.
    - `name`: the name of the file in messages.
    """
    _only(content, (*COMMON, "agents"), name)
    entries = content.get("agents")
    if not isinstance(entries, list) or not entries:
        raise SurveyorError(
            f"{name} names no agents: it needs at least one [[agents]], in double brackets."
        )
    shared = {key: value for key, value in content.items() if key != "agents"}
    found = [run for entry in entries for run in _runs(_merged(shared, entry, name), name)]
    _check_used(content, found, name)
    _check_distinct(found, name)
    return found


def _check_distinct(found: list[Planned], name: str) -> None:
    """Raise `SurveyorError` if a run is listed twice, or two agents have the same label."""
    seen: dict[str, str] = {}
    called: dict[tuple[str, str, int], str] = {}
    for run in found:
        if run.config.name in seen:
            raise SurveyorError(
                f"{name} asks for the run {run.config.name} twice, as '{seen[run.config.name]}' "
                f"and as '{run.label}'."
            )
        seen[run.config.name] = run.label
    for run in found:
        one = (run.label, run.config.env, run.config.seed)
        if called.setdefault(one, run.config.name) != run.config.name:
            raise SurveyorError(
                f"{name}: two agents on {run.config.env} are called '{run.label}' and differ; "
                "give one of them a label."
            )


def _check_used(content: dict[str, Any], found: list[Planned], name: str) -> None:
    """Raise `SurveyorError` if a key has no effect on any environment of the specification."""
    kinds = [run.config.family for run in found]
    uses = {
        "episodes": (any(kind.by_episodes for kind in kinds), "is learnt by episodes"),
        "steps": (any(not kind.by_episodes for kind in kinds), "is learnt by steps"),
        "frames": (any(kind.unit == "frames" for kind in kinds), "is counted in frames"),
        "protocol": (any(kind.protocols for kind in kinds), "has protocols"),
    }
    for key, (used, what) in uses.items():
        if not used and any(key in entry for entry in (content, *content["agents"])):
            raise SurveyorError(f"{name}: {key} is given, but no environment {what}.")


def _merged(shared: dict[str, Any], entry: Any, name: str) -> dict[str, Any]:
    """Return the keys of one agent; its steps or frames replace either at the top."""
    own = _checked(entry, name)
    if "steps" in own or "frames" in own:
        shared = {key: value for key, value in shared.items() if key not in ("steps", "frames")}
    return {**shared, **own}


def _checked(entry: Any, name: str) -> dict[str, Any]:
    if not isinstance(entry, dict) or "agent" not in entry:
        raise SurveyorError(f'{name}: each of [[agents]] needs an agent, such as agent = "su".')
    _only(entry, (*COMMON, *OWN), name)
    for key in ("agent", "label", "preset"):
        if key in entry and (not isinstance(entry[key], str) or not entry[key].strip()):
            raise SurveyorError(f"{name}: {key} takes a text, not {entry[key]!r}.")
    agents.find(entry["agent"])
    return entry


def _only(content: dict[str, Any], known: tuple[str, ...], name: str) -> None:
    for key in content:
        if key not in known:
            raise SurveyorError(f"{name}: {unknown('key', key, known)}")


def _runs(entry: dict[str, Any], name: str) -> Iterator[Planned]:
    seeds, environments = _seeds(entry, name), entry.get("envs", [])
    if not isinstance(environments, list) or not all(isinstance(e, str) for e in environments):
        raise SurveyorError(f"{name}: envs takes a list of names, not {environments!r}.")
    if not environments:
        raise SurveyorError(f"{name} names no environments for {entry['agent']}: envs = [...].")
    if not isinstance(entry.get("keep_going", False), bool):
        raise SurveyorError(f"{name}: keep_going takes true or false.")
    for point in _grid(entry, name):
        # An agent without a label is called by the settings that distinguish it.
        apart = point if "label" in entry else {**_table(entry, "set", name), **point}
        if "preset" in entry and "label" not in entry:
            apart = {"preset": entry["preset"], **apart}
        label = str(entry.get("label", entry["agent"]))
        label = ", ".join([label, *(f"{key} {value}" for key, value in apart.items())])
        for env in environments:
            try:
                agent = _agent(entry, env, point, name)
                configs = [_config(entry, agent, env, seed, name) for seed in seeds]
            except SurveyorError as error:  # name the file in every message
                text = str(error)
                raise SurveyorError(text if text.startswith(name) else f"{name}: {text}") from None
            yield from (Planned(config, label) for config in configs)


def _config(entry: dict[str, Any], agent: Agent, env: str, seed: int, name: str) -> Config:
    family = families.find(env)
    counts_frames = family.unit == "frames"
    episodes, steps, frames = (_whole(entry, key, name) for key in BUDGETS)
    if counts_frames and frames is not None and steps is not None:
        raise SurveyorError(
            f"{name}: {env} has both steps and frames; a step is {family.frames_per_step} frames."
        )
    protocol = entry.get("protocol") if family.protocols else None
    if protocol is not None and not isinstance(protocol, str):
        raise SurveyorError(f"{name}: protocol takes a text, not {protocol!r}.")
    return api.configure(
        agent,
        env,
        seed=seed,
        # A budget of another kind is for other environments of the same sweep.
        episodes=episodes if family.by_episodes else None,
        steps=None if family.by_episodes else steps,
        frames=frames if counts_frames else None,
        stop_when_solved=not entry.get("keep_going", False),
        protocol=protocol,
    )


def _whole(entry: dict[str, Any], key: str, name: str) -> int | None:
    """Return a budget, a whole number that may be written as 1e6, or None if it is not given."""
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        raise SurveyorError(f"{name}: {key} takes a whole number, not {value!r}.")
    if value < 1:
        raise SurveyorError(f"{name}: {key} must be at least 1, not {value}.")
    return int(value)


def _agent(entry: dict[str, Any], env: str, point: dict[str, Any], name: str) -> Agent:
    base = agents.preset(entry["agent"], families.find(env).preset(env), entry.get("preset"))
    fields = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    changes = {**_table(entry, "set", name), **point}
    if both := set(_table(entry, "set", name)) & set(point):
        raise SurveyorError(f"{name}: {both.pop()} is both in set and in grid.")
    for key, value in changes.items():
        if key not in fields:
            raise SurveyorError(f"{name}: {unknown('hyperparameter', key, fields)}")
        kind = type(fields[key])
        fits = isinstance(value, int | float) if kind is float else isinstance(value, kind)
        if fields[key] is not None and (not fits or isinstance(value, bool) != (kind is bool)):
            raise SurveyorError(f"{name}: {key} takes {kind.__name__}, not {value!r}.")
        try:
            changes[key] = float(value) if kind is float else value
        except OverflowError:
            raise SurveyorError(f"{name}: {key} is too large.") from None
    return dataclasses.replace(base, **changes)


def _grid(entry: dict[str, Any], name: str) -> list[dict[str, Any]]:
    grid = _table(entry, "grid", name)
    if "grid" in entry and not grid:
        raise SurveyorError(f"{name}: the grid of {entry['agent']} is empty.")
    for key, values in grid.items():
        if not isinstance(values, list):
            raise SurveyorError(f"{name}: the grid of {key} takes a list, not {values!r}.")
        if not values:
            raise SurveyorError(f"{name}: the grid of {key} is empty; it needs a list of values.")
    points = itertools.product(*grid.values())
    return [dict(zip(grid, point, strict=True)) for point in points]


def _table(entry: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    found = entry.get(key, {})
    if not isinstance(found, dict):
        raise SurveyorError(f"{name}: {key} takes a table, such as {{ theta = 1.0 }}.")
    return found


def _seeds(entry: dict[str, Any], name: str) -> list[int]:
    seeds = entry.get("seeds", 1)
    found = list(range(seeds)) if type(seeds) is int else seeds
    if not isinstance(found, list) or not found or not all(type(s) is int for s in found):
        raise SurveyorError(f"{name}: seeds takes a number of seeds or a list of them.")
    return found
