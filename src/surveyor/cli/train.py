"""`surveyor train`."""

import dataclasses
import sys
from collections.abc import Container
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_origin, get_type_hints

from tyro.conf import arg

from surveyor import agents
from surveyor.agents.options import (
    REASONS,
    Count,
    Size,
    descriptions,
    literals,
    require_valid,
    unread,
    values,
)
from surveyor.cli.options import Flag, conclude, parse
from surveyor.envs import families
from surveyor.errors import SurveyorError, require

USAGE = "surveyor train ENV [--agent NAME] [--preset NAME]"
ABOUT = f"""Train an agent on an environment, until it is solved or the budget is spent.

ENV is {", ".join(family.usage for family in families.known())} (surveyor list envs), such as
Tree-100. --agent is su-plus unless told otherwise (surveyor list agents). --preset chooses one of
the agent's named sets of hyperparameters (surveyor list presets)."""
ASK_FOR_ENV = "Which environment? For example: surveyor train Tree-100"


@dataclasses.dataclass(frozen=True)
class Train:
    """Options other than the agent's; the last of them are for some environments only."""

    seed: int = 0
    """Decides the environment and every random draw of the training."""
    seeds: Size = 1
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
    episodes: Size | None = None
    """Largest number of training episodes. By default {budget:,}."""
    keep_going: Flag = False
    """Spend all episodes, even after the problem is solved."""
    steps: Size | None = None
    """Environment steps to train for. By default {budget:,}."""
    frames: Size | None = None
    """Frames to train for, {held} of them a step. By default {frames:,}."""
    frame_stack: Count = 0
    """Frames that an observation stacks; each is stored once. 0 for those of the environment."""
    no_scale: Flag = False
    """Give observations to the network as they come, bytes divided by 255."""
    protocol: str | None = None
    """Protocol to play the environment by: {protocols}. The first is the default; each name is an
    option too."""


LENGTHS = {
    "episodes": {"episodes", "keep_going"},
    "steps": {"steps", "frame_stack", "no_scale"},
    "frames": {"steps", "frames"},
}
"""Options that depend on the unit in which people count training, by unit."""


REASONS_FOREIGN = {
    "protocol": "which is played in one way only",
    "frame_stack": "which has numbered states or stacks frames by itself",
    "no_scale": "where nothing is scaled",
}
"""Why options that some environments lack have no effect there."""


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
            continue
        found[name] = value if equals else next(queue, "")
        require(found[name].strip("-") == found[name] != "", f"{name} needs a value.")
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
    ways = {f"--{way}" for family in families.FAMILIES for way in family.protocols}
    argv = [f"--protocol={word[2:]}" if word in ways else word for word in argv]
    env, name, preset, words = choose(argv)
    entry = agents.find(name)
    foreign = {"protocol"}.union(*LENGTHS.values())
    if env is None:
        require("-h" in words or "--help" in words, ASK_FOR_ENV)
        kind = _without(Train(), foreign)
        kind.__doc__ = f"{ABOUT}\n\nGive ENV to see all options of {name} on it."
        return parse(kind, ["--help"], USAGE)
    family = families.find(env)
    env = family.canonical(env)
    usual = entry.values(family.preset(env), preset)
    known = LENGTHS[family.unit] | ({"protocol"} if family.protocols else set())
    agent, foreign = agents.make_outline(name, usual), foreign - known
    silent = unread(agent, family.setting(env))
    given = [word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")]
    for word in given:
        option = word[2:].replace("-", "_")
        reason = REASONS_FOREIGN.get(option, f"whose training is counted in {family.unit}")
        require(option not in foreign, f"{word} has no effect on {env}, {reason}.")
    for option, scope in silent.items():
        flags = {f"--agent.{no}{option}".replace("_", "-") for no in ("", "no-")}
        require(flags.isdisjoint(given), f"{option} has no effect on {env}: {REASONS[scope]}.")
    inner = _without(agent, silent)
    budget, held = family.default_budget(env), family.frames_per_step
    ways = " or ".join(f"{way} ({about})" for way, about in family.protocols.items())
    facts = {"budget": budget, "held": held, "frames": held * budget, "protocols": ways}
    own = ("agent", inner, dataclasses.field(default_factory=inner))
    kind = _without(Train(), foreign, own, **facts)
    kind.__doc__ = f"{ABOUT}\n\nBelow are the options of {name} on {env}."
    options = parse(kind, words, USAGE)
    require_valid(options)
    changed = agents.make_outline(name, values(agent) | values(options.agent))
    chosen = [word.removeprefix("--agent.").removeprefix("no-") for word in given]
    return _train(options, changed, env, name, [word.replace("-", "_") for word in chosen])


def _train(options: Any, outline: Any, env: str, title: str, given: list[str]) -> int:
    from surveyor import drawing
    from surveyor.launch import progress, work
    from surveyor.runs import api, loggers

    if options.plot is not None:
        drawing.require_matplotlib()
    agent = agents.make(title, values(outline))
    counted = ("episodes", "steps", "frames", "protocol")
    budget: dict[str, Any] = {name: getattr(options, name, None) for name in counted}
    budget["stop_when_solved"] = not getattr(options, "keep_going", False)
    budget["frame_stack"] = getattr(options, "frame_stack", 0)
    budget["scale"] = not getattr(options, "no_scale", False)
    seeds = range(options.seed, options.seed + options.seeds)
    configs = [api.configure(agent, env, seed=seed, given=given, **budget) for seed in seeds]
    sinks = loggers.check(tensorboard=options.tensorboard, wandb=options.wandb)
    with progress.Overview(configs) as overview:
        more = work.RunOptions(retrain=True, sinks=sinks, beliefs=not options.no_beliefs)
        train = work.train_alone
        if len(configs) > 1:
            from surveyor.launch.pool import train_all as train
        results = train(configs, options.out, overview, more)
    begun = [result for result in results if result and "failure" not in result]
    failures = [result["failure"] for result in results if result and "failure" in result]
    code = conclude(env, title, begun, as_json=options.json)
    if failures:
        raise SurveyorError(" ".join(dict.fromkeys(failures)))
    if left := len(configs) - len(begun):
        print(f"{left} runs not started; rerun the same command to continue.", file=sys.stderr)
        return 130
    if options.plot is not None:
        from surveyor.runs import picture

        drawn = picture.learning(api.load(begun[0]["path"]), options.plot)
        print(f"Picture: {drawn}", file=sys.stderr)
    return code


def _without(
    options: Any, hidden: Container[str], *more: tuple[str, type, Any], **facts: Any
) -> Any:
    """Return a class with the options and defaults of an object but for hidden ones, and `more`.

    The descriptions of options name `facts` about the environment.
    """
    types, texts = get_type_hints(type(options), include_extras=True), descriptions(type(options))
    fields = []
    for field in dataclasses.fields(options):
        if field.name not in hidden:
            text = " ".join(texts.get(field.name, "").split())
            text = text.format(**facts) if facts else text
            default = dataclasses.field(default=getattr(options, field.name))
            hint = types[field.name]
            if get_origin(hint) in (Union, UnionType) and (names := literals(hint)):
                hint = Literal[names]  # a module can be given in Python only
            fields.append((field.name, Annotated[hint, arg(help=text)], default))
    return dataclasses.make_dataclass("Options", [*fields, *more], frozen=True)


def _takes_value(word: str, agent: str) -> bool:
    """Return whether the word after an option is its value: all but flags take one."""
    plain = word.lstrip("-").replace("-", "_")
    own = plain.startswith("agent.")
    fields = dataclasses.fields(agents.find(agent).outline() if own else Train)
    flags = ["h", "help", *(field.name for field in fields if field.type in (bool, Flag))]
    return plain.removeprefix("agent.").removeprefix("no_" if own else "") not in flags
