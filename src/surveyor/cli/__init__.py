"""The command line: `surveyor train Tree-100`."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from surveyor import agents, plots
from surveyor.agents.base import Agent
from surveyor.cli.commands import Evaluate, List, Resume, Train
from surveyor.cli.options import parse
from surveyor.cli.paper import paper
from surveyor.cli.report import report, watch
from surveyor.cli.sweep import plot, show_status, sweep
from surveyor.envs import families
from surveyor.errors import SurveyorError, unknown
from surveyor.launch import pool as parallel
from surveyor.launch.progress import Reporter, spent, summary
from surveyor.launch.work import RunOptions
from surveyor.runs import api, film, loggers
from surveyor.runs.evaluation import evaluate as evaluate_run
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.run import Run
from surveyor.sweeps.statistics import median_solved

USAGE = """\
surveyor: deep exploration for reinforcement learning

  surveyor train ENV       train an agent, for example: surveyor train Tree-100
  surveyor resume RUN      go on with a run that was stopped or killed
  surveyor evaluate RUN    play episodes with what a run has learnt
  surveyor list WHAT       agents, envs or presets
  surveyor sweep SPEC      train many runs from a specification, here or on a Ray cluster
  surveyor status DIR      how the runs in a folder stand
  surveyor plot DIR        learning curves, profiles and scores of the runs in a folder
  surveyor report DIR      a page for the browser: how runs learnt, what the agent believed
  surveyor watch DIR       the same page while training goes on
  surveyor paper RESULT    reproduce a figure, a table or the propositions of the paper

surveyor COMMAND --help says more about each."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code (2 for bad input, 130 when stopped)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # where my_package:MyEnv-v0 may be, as with python -m
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if argv else 2
    try:
        if argv[0] not in COMMANDS:
            raise unknown("command", argv[0], COMMANDS)
        return COMMANDS[argv[0]](argv[1:])
    except SurveyorError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        said = f"'{error.filename}': " if error.filename else ""
        print(f"A file could not be read or written: {said}{error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def train(argv: list[str]) -> int:
    """`surveyor train`."""
    # Twice: the environment that the first reading finds decides the defaults of the second.
    name, chosen = _option(argv, "--agent", "su"), _option(argv, "--preset", "") or None
    env = _environment(argv, name, chosen)
    problem = families.find(env).preset(env)
    options = _parse("train", Train, argv, agents.preset(name, problem, chosen))
    if options.plot is not None:
        plots.require_matplotlib()
    if options.seeds < 1:
        raise SurveyorError(f"seeds must be at least 1, not {options.seeds}.")
    configs = [
        api.configure(
            options.hyperparameters,
            options.env,
            seed=seed,
            episodes=options.episodes,
            steps=options.steps,
            frames=options.frames,
            stop_when_solved=not options.keep_going,
            protocol=options.protocol,
        )
        for seed in range(options.seed, options.seed + options.seeds)
    ]
    sinks = loggers.check(tensorboard=options.tensorboard, wandb=options.wandb)
    names = [f"{config.env} seed {config.seed}" for config in configs]
    with Reporter.of(names, configs[0]) as reporter:
        run_options = RunOptions(retrain=True, sinks=sinks, beliefs=not options.no_beliefs)
        results = parallel.train_all(configs, options.out, reporter, run_options)
    begun = [result for result in results if result and "failure" not in result]
    failures = [result["failure"] for result in results if result and "failure" in result]
    code = _conclude(options.env, options.agent, begun, as_json=options.json)
    if failures:
        raise SurveyorError(" ".join(dict.fromkeys(failures)))
    if len(begun) < len(configs):
        waiting = len(configs) - len(begun)
        print(f"Not begun: {waiting}. The same command goes on with all.", file=sys.stderr)
        return 130
    if options.plot is not None:
        picture = plots.learning(Run.open(begun[0]["path"]), options.plot)
        print(f"The picture is {picture}", file=sys.stderr)
    return code


def resume(argv: list[str]) -> int:
    """`surveyor resume`."""
    agent, path = _agent_of_run(argv)
    options = _parse("resume", Resume, argv, agent)
    config = RunFolder.open(path).config()
    name = f"{config.env} seed {config.seed}"
    with Reporter.of([name], config) as reporter:
        run = api.resume(
            path,
            agent=options.hyperparameters,
            tensorboard=options.tensorboard,
            wandb=options.wandb,
            report=lambda run: reporter.update(0, run.latest, run.result),
        )
        result = {**run.result, "finished": run.finished}
        reporter.end(0, result)
    return _conclude(config.env, agents.name_of(agent), [result], as_json=options.json)


def evaluate(argv: list[str]) -> int:
    """`surveyor evaluate`."""
    options = _parse("evaluate", Evaluate, argv)
    run = Run.open(options.run, replay=False)
    episodes = options.episodes
    if episodes is None:
        episodes = run.config.family.evaluation_episodes
    if options.video is not None:  # first: where it cannot be drawn, that is soon known
        print(f"The film is {film.write(run, options.video)}", file=sys.stderr)
    outcome = evaluate_run(run, episodes)
    if options.json:
        said = {"mean_return": outcome.mean_return, **dataclasses.asdict(outcome)}
        print(json.dumps({"path": str(options.run), **said}))
        return 0
    done = run.runner.result(run.loop)
    trained = spent(done)
    known = ""
    if outcome.optimal is not None:
        best = f"the optimal return is {outcome.optimal_return:.4g}"
        known = f", {outcome.optimal:.0%} optimal ({best})"
    if outcome.human_normalised is not None:
        known = f", human-normalised {outcome.human_normalised:.3f}"
    print(
        f"{run.config.env}, greedy policy after {trained} of training: mean return "
        f"{outcome.mean_return:.4g} over {len(outcome.returns)} episodes{known}."
    )
    return 0


def list_names(argv: list[str]) -> int:
    """`surveyor list`."""
    what = _parse("list", List, argv).what
    if what not in ("agents", "envs", "presets"):
        raise unknown("list", what, ("agents", "envs", "presets"))
    if what == "agents":
        for name, kind in agents.REGISTRY.items():
            print(f"{name:10} {_first_line(kind)}")
    elif what == "envs":
        for family in families.FAMILIES:
            print(family.usage.ljust(16), family.summary)
    else:
        for name in agents.REGISTRY:
            for chosen, maker in agents.presets(name).items():
                print(f"--agent {name} --preset {chosen}: {' '.join(str(maker()).split())}")
        for (name, family), maker in agents.PRESETS.items():
            print(f"{name} on {family} by default: {maker.__name__}")
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "list": list_names,
    "sweep": sweep,
    "status": show_status,
    "plot": plot,
    "report": report,
    "watch": watch,
    "paper": paper,
}


def _parse(command, kind, argv, agent=None):
    """Parse options with tyro; the defaults of `--agent.…` are those of the given agent."""
    if agent is not None:
        # The registered class in place of the abstract one, with this agent's values as defaults.
        annotation = Annotated[type(agent), arg(name="agent")]
        field = ("hyperparameters", annotation, dataclasses.field(default_factory=lambda: agent))
        kind = dataclasses.make_dataclass(
            kind.__name__, [field], bases=(kind,), frozen=True, kw_only=True
        )
    return parse(kind, argv, f"surveyor {command}")


def _environment(argv: list[str], name: str, chosen: str | None) -> str:
    """The environment among the words. Options are checked together with defaults, of which those
    of one family or another will do."""
    refused: list[SurveyorError] = []
    for family in ("", "classic", "minatar", "atari"):
        try:
            return _parse("train", Train, argv, agents.preset(name, family, chosen)).env
        except SurveyorError as error:
            refused.append(error)
    raise refused[0]


def _option(argv: list[str], name: str, default: str) -> str:
    """The value of an option, before the parser that depends on it exists."""
    for i, word in enumerate(argv):
        if word == name and i + 1 < len(argv):
            return argv[i + 1]
        if word.startswith(name + "="):
            return word.partition("=")[2]
    return default


def _agent_of_run(argv: list[str]) -> tuple[Agent, Path]:
    """The run folder among the words, and the agent in it, which the parser needs beforehand."""
    if "-h" in argv or "--help" in argv:
        return agents.preset("su", ""), Path()
    words = [Path(word) for word in argv if not word.startswith("-")]
    paths = [path for path in words if (path / "config.json").exists()] or words
    if not paths:
        raise SurveyorError("Which run? For example: surveyor resume runs/Tree-100-su-s0-…")
    return RunFolder.open(paths[0]).config().agent, paths[0]


def _conclude(env: str, agent: str, results: list[Record], *, as_json: bool) -> int:
    """Say how it went; 130 if something was stopped before its end."""
    stopped = [result["path"] for result in results if not result.pop("finished")]
    solved = [at for result in results if (at := result.get("solved_at")) is not None]
    median = median_solved(result.get("solved_at") for result in results)
    if as_json:
        print(json.dumps({"env": env, "agent": agent, "runs": results, "median_solved_at": median}))
    else:
        for result in results:
            print(f"{env} {agent} seed {result['seed']}: {summary(result)}\n  {result['path']}")
        if len(results) > 1 and "steps" not in results[0]:
            said = "" if median is None else f", median episode {median:g}"
            print(f"{len(solved)} of {len(results)} solved{said}")
    for path in stopped:
        print(f"Stopped; everything is saved. Go on with: surveyor resume {path}", file=sys.stderr)
    return 130 if stopped else 0


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
