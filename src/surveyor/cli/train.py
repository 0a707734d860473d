"""`surveyor train`."""

import dataclasses
import sys
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from tyro.conf import arg

from surveyor import agents
from surveyor.agents.options import REASONS, descriptions, require, unread
from surveyor.cli.options import Flag, conclude, parse
from surveyor.envs import families
from surveyor.errors import SurveyorError

USAGE = "surveyor train ENV [--agent NAME] [--preset NAME]"
ABOUT = """Train an agent on an environment, until it is solved or the budget is spent.

ENV is Tree-<L>, TiedTree-<L> or Chain-<L>, such as Tree-100; MinAtar/<Game>; ALE/<Game>; or any
Gymnasium id, such as CartPole-v1 or my_package:MyEnv-v0 (surveyor list envs). --agent is su-plus
unless told otherwise (surveyor list agents). --preset chooses one of the agent's named sets of
hyperparameters (surveyor list presets)."""
ASK_FOR_ENV = "Which environment? For example: surveyor train Tree-100"


@dataclasses.dataclass(frozen=True)
class Train:
    """Options other than the agent's; the last of them are for some environments only."""

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
    episodes: int | None = None
    """Largest number of training episodes. By default 5000, more on a long chain."""
    keep_going: Flag = False
    """Spend all episodes, even after the problem is solved."""
    steps: int | None = None
    """Environment steps to train for. By default 1,000,000 on MinAtar and 200,000 in Gymnasium."""
    frames: int | None = None
    """Frames to train for, four of them a step. By default 200,000,000, as in the paper."""
    protocol: str | None = None
    """paper (no-op starts, a life lost ends an episode for learning; the default) or machado
    (sticky actions, all 18 actions)."""


LENGTHS = {
    "episodes": {"episodes", "keep_going"},
    "steps": {"steps"},
    "frames": {"steps", "frames", "protocol"},
}
"""Options that depend on the unit in which people count training, by unit."""


def choose(argv: list[str]) -> tuple[str | None, str, str | None, list[str]]:
    """Return environment, agent and preset of a command, and its other words.

    ENV is the first word that is neither an option nor the value of one.
    """
    found: dict[str, Any] = {"--agent": agents.DEFAULT, "--preset": None}
    words, queue = [], iter(argv)
    for word in queue:
        name, equals, value = word.partition("=")
        if name not in found:
            words.append(word)
        elif (given := value if equals else next(queue, None)) is None:
            raise SurveyorError(f"{name} needs a value.")
        else:
            found[name] = given
    agent, preset = found.values()
    places = iter(enumerate(words))
    for place, word in places:
        if not word.startswith("-"):
            return word, agent, preset, words[:place] + words[place + 1 :]
        if "=" not in word and _takes_value(word, agent):
            next(places, None)
    return None, agent, preset, words


def main(argv: list[str]) -> int:
    """Run `surveyor train`."""
    env, name, preset, words = choose(argv)
    entry = agents.find(name)
    foreign = set().union(*LENGTHS.values())
    if env is None:
        require("-h" in words or "--help" in words, ASK_FOR_ENV)
        kind = _without(Train(), foreign)
        kind.__doc__ = f"{ABOUT}\n\nGive ENV to see all options of {name} on it."
        return parse(kind, ["--help"], USAGE)
    family = families.find(env)
    env = family.canonical(env)
    values = entry.values(family.preset(env), preset)
    agent, foreign = agents.make(name, values), foreign - LENGTHS[family.unit]
    silent = unread(agent, family.setting(env))
    given = [word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")]
    for word in given:
        said = f"{word} has no effect on {env}, which is learnt by {family.unit}."
        require(word[2:].replace("-", "_") not in foreign, said)
    for option, scope in silent.items():
        flags = {f"--agent.{no}{option}".replace("_", "-") for no in ("", "no-")}
        require(flags.isdisjoint(given), f"{option} has no effect on {env}: {REASONS[scope]}.")
    inner = _without(agent, silent)
    kind = _without(Train(), foreign, ("agent", inner, dataclasses.field(default_factory=inner)))
    kind.__doc__ = f"{ABOUT}\n\nBelow are the options of {name} on {env}."
    options = parse(kind, words, USAGE)
    changed = dataclasses.replace(agent, **dataclasses.asdict(options.agent))
    return _train(options, changed, env, name)


def _train(options: Any, agent: Any, env: str, title: str) -> int:
    from surveyor import drawing
    from surveyor.launch import pool, progress, work
    from surveyor.runs import api, loggers, picture

    if options.plot is not None:
        drawing.require_matplotlib()
    require(options.seeds >= 1, f"seeds must be at least 1, not {options.seeds}.")
    counted = ("episodes", "steps", "frames", "protocol")
    budget: dict[str, Any] = {name: getattr(options, name, None) for name in counted}
    budget["stop_when_solved"] = not getattr(options, "keep_going", False)
    seeds = range(options.seed, options.seed + options.seeds)
    configs = [api.configure(agent, env, seed=seed, **budget) for seed in seeds]
    sinks = loggers.check(tensorboard=options.tensorboard, wandb=options.wandb)
    names = [f"{config.env} seed {config.seed}" for config in configs]
    with progress.Reporter(names, configs[0]) as reporter:
        more = work.RunOptions(retrain=True, sinks=sinks, beliefs=not options.no_beliefs)
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
        drawn = picture.learning(api.load(begun[0]["path"]), options.plot)
        print(f"Picture: {drawn}", file=sys.stderr)
    return code


def _without(options: Any, hidden: Container[str], *more: tuple[str, type, Any]) -> Any:
    """Return a class with the options and defaults of an object but for hidden ones, and `more`."""
    types, texts = get_type_hints(type(options), include_extras=True), descriptions(type(options))
    fields = [
        (
            field.name,
            Annotated[types[field.name], arg(help=" ".join(texts.get(field.name, "").split()))],
            dataclasses.field(default=getattr(options, field.name)),
        )
        for field in dataclasses.fields(options)
        if field.name not in hidden
    ]
    return dataclasses.make_dataclass("Options", [*fields, *more], frozen=True)


def _takes_value(word: str, agent: str) -> bool:
    """Return whether the word after an option is its value: all but flags take one."""
    plain = word.lstrip("-").replace("-", "_")
    if not plain.startswith("agent."):
        return plain not in ("h", "help", "keep_going", "no_beliefs", "tensorboard", "json")
    fields = dataclasses.fields(agents.find(agent).load())
    flags = [field.name for field in fields if field.type is bool]
    return plain.removeprefix("agent.").removeprefix("no_") not in flags
