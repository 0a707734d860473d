"""`surveyor train`."""

import dataclasses
import sys
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

from tyro.conf import arg

from surveyor import agents
from surveyor.agents.options import REASONS, Setting, descriptions, unread
from surveyor.cli.options import Flag, conclude, parse
from surveyor.envs import families
from surveyor.errors import SurveyorError

USAGE = "surveyor train ENV [--agent NAME] [--preset NAME]"
ABOUT = """Train an agent on an environment, until it is solved or the budget is spent.

ENV is Tree-<L>, TiedTree-<L> or Chain-<L>, such as Tree-100; MinAtar/<Game>; ALE/<Game>; or any
Gymnasium id, such as CartPole-v1 or my_package:MyEnv-v0 (surveyor list envs). --agent is su-plus
unless told otherwise (surveyor list agents). --preset chooses one of the agent's named sets of
hyperparameters (surveyor list presets)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train:
    """Options of every environment."""

    seed: int = 0
    """Decides the environment's hidden action mapping and every random draw of the training."""
    seeds: int = 1
    """Train this many seeds, counting up from --seed, on all cores."""
    out: Path = Path("runs")
    """Where the run folders go."""
    plot: Path | None = None
    """Write a picture of the (first) run's learning to this file."""
    no_beliefs: Flag = False
    """Do not record snapshots of what the agent believes, which `surveyor report` shows."""
    tensorboard: Flag = False
    """Write the metrics for TensorBoard as well, into the run folder."""
    wandb: str | None = None
    """Send the metrics to this project of Weights & Biases as well."""
    json: Flag = False
    """Print the outcome as one JSON object, and nothing else on standard output."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Episodes(Train):
    """Options of environments that are learnt by episodes."""

    episodes: int | None = None
    """Largest number of training episodes. By default 5000, more on a long chain."""
    keep_going: Flag = False
    """Spend all episodes, even after the problem is solved."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps(Train):
    """Options of environments that are learnt by steps."""

    steps: int | None = None
    """Environment steps to train for. By default 1,000,000 on MinAtar and 200,000 in Gymnasium."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frames(Steps):
    """Options of Atari games."""

    frames: int | None = None
    """Frames to train for, four of them a step. By default 200,000,000, as in the paper."""
    protocol: str | None = None
    """paper (no-op starts, a life lost ends an episode for learning; the default) or machado
    (sticky actions, all 18 actions)."""


KINDS = {"episodes": Episodes, "steps": Steps, "frames": Frames}
"""Options by the unit in which people count training."""


class Chosen(NamedTuple):
    """Environment, agent and preset of a command, and its other words."""

    env: str | None
    agent: str
    preset: str | None
    words: list[str]


def choose(argv: list[str]) -> Chosen:
    """Take environment, agent and preset out of the words of a command.

    ENV is the first word that is neither an option nor the value of one.
    """
    found: dict[str, str] = {}
    words: list[str] = []
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--agent", "--preset"):
            if not equals and not queue:
                raise SurveyorError(f"{name} needs a value.")
            found[name] = value if equals else queue.pop(0)
        elif not word.startswith("-") and "env" not in found:
            found["env"] = word
        else:
            words.append(word)
            if word.startswith("-") and not equals and _takes_value(word, argv) and queue:
                words.append(queue.pop(0))
    return Chosen(found.get("env"), _agent_of(argv), found.get("--preset"), words)


def main(argv: list[str]) -> int:
    """Run `surveyor train`."""
    chosen = choose(argv)
    entry = agents.find(chosen.agent)
    if chosen.env is None:
        return _without_env(entry, chosen.words)
    family = families.find(chosen.env)
    env = family.canonical(chosen.env)
    values = entry.values(family.preset(env), chosen.preset)
    setting = family.setting(env)
    _refuse_words(entry, chosen.words, setting, family.unit, env)
    agent = agents.make(entry.name, values)
    kind = _with_agent(KINDS[family.unit], agent, unread(agent, setting))
    kind.__doc__ = f"{ABOUT}\n\nBelow are the options of {entry.name} on {env}."
    options = parse(kind, chosen.words, USAGE)
    changed = dataclasses.replace(agent, **dataclasses.asdict(options.agent))
    return _train(options, changed, env, entry.name)


def _without_env(entry: agents.Entry, words: list[str]) -> int:
    """Print the help that needs no environment, or ask for one."""
    if "-h" in words or "--help" in words:
        kind = dataclasses.make_dataclass("Train", [], bases=(Train,), frozen=True)
        kind.__doc__ = f"{ABOUT}\n\nGive ENV to see all options of {entry.name} on it."
        parse(kind, ["--help"], USAGE)
    raise SurveyorError("Which environment? For example: surveyor train Tree-100")


def _train(options: Any, agent: Any, env: str, title: str) -> int:
    from surveyor import drawing
    from surveyor.launch import pool
    from surveyor.launch.progress import Reporter
    from surveyor.launch.work import RunOptions
    from surveyor.runs import api, loggers, picture
    from surveyor.runs.run import Run

    if options.plot is not None:
        drawing.require_matplotlib()
    if options.seeds < 1:
        raise SurveyorError(f"seeds must be at least 1, not {options.seeds}.")
    budget = {
        name: getattr(options, name)
        for name in ("episodes", "steps", "frames", "protocol")
        if hasattr(options, name)
    }
    budget["stop_when_solved"] = not getattr(options, "keep_going", False)
    seeds = range(options.seed, options.seed + options.seeds)
    configs = [api.configure(agent, env, seed=seed, **budget) for seed in seeds]
    sinks = loggers.check(tensorboard=options.tensorboard, wandb=options.wandb)
    names = [f"{config.env} seed {config.seed}" for config in configs]
    with Reporter(names, configs[0]) as reporter:
        more = RunOptions(retrain=True, sinks=sinks, beliefs=not options.no_beliefs)
        results = pool.train_all(configs, options.out, reporter, more)
    begun = [result for result in results if result and "failure" not in result]
    failures = [result["failure"] for result in results if result and "failure" in result]
    code = conclude(env, title, begun, as_json=options.json)
    if failures:
        raise SurveyorError(" ".join(dict.fromkeys(failures)))
    if len(begun) < len(configs):
        left = len(configs) - len(begun)
        print(f"{left} runs not started; rerun the same command to continue.", file=sys.stderr)
        return 130
    if options.plot is not None:
        drawn = picture.learning(Run.open(begun[0]["path"]), options.plot)
        print(f"Picture: {drawn}", file=sys.stderr)
    return code


def _with_agent(kind: type, agent: Any, hidden: Container[str]) -> Any:
    """Return an options class with the agent's options but for hidden ones, and their defaults."""
    types, texts = get_type_hints(type(agent), include_extras=True), descriptions(type(agent))
    fields = [
        (
            field.name,
            Annotated[types[field.name], arg(help=" ".join(texts.get(field.name, "").split()))],
            dataclasses.field(default=getattr(agent, field.name)),
        )
        for field in dataclasses.fields(agent)
        if field.name not in hidden
    ]
    inner = dataclasses.make_dataclass("AgentOptions", fields, frozen=True)
    outer = ("agent", inner, dataclasses.field(default_factory=inner))
    return dataclasses.make_dataclass(
        kind.__name__, [outer], bases=(kind,), frozen=True, kw_only=True
    )


def _refuse_words(
    entry: agents.Entry, words: list[str], setting: Setting, unit: str, env: str
) -> None:
    """Raise `SurveyorError` for an option that has no effect on the environment."""
    given = [word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")]
    known = _flags(KINDS[unit])
    for word in given:
        if word not in known and word in {flag for kind in KINDS.values() for flag in _flags(kind)}:
            raise SurveyorError(f"{word} has no effect on {env}, which is learnt by {unit}.")
    if not any(word.startswith("--agent.") for word in given):
        return
    for option, scope in unread(entry.load(), setting).items():
        name = option.replace("_", "-")
        if f"--agent.{name}" in given or f"--agent.no-{name}" in given:
            raise SurveyorError(f"{option} has no effect on {env}: {REASONS[scope]}.")


def _flags(kind: type) -> set[str]:
    return {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(kind)}


def _takes_value(word: str, argv: list[str]) -> bool:
    """Return whether the word after an option is its value: all but flags take one."""
    plain = word.lstrip("-").replace("-", "_")
    if not plain.startswith("agent."):
        return plain not in ("h", "help", "keep_going", "no_beliefs", "tensorboard", "json")
    kind = agents.find(_agent_of(argv)).load()
    flags = [field.name for field in dataclasses.fields(kind) if field.type is bool]
    return plain.removeprefix("agent.").removeprefix("no_") not in flags


def _agent_of(argv: list[str]) -> str:
    """Return the value of the last --agent, or the default agent."""
    found = agents.DEFAULT
    for word, after in zip(argv, [*argv[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name == "--agent":
            found = value if equals else after
    return found
