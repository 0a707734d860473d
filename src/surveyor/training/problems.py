"""Which runner trains on which environment, from a name or from an object of the user's."""

import copy
import dataclasses
import difflib
import functools
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.spaces import Discrete
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from surveyor import envs
from surveyor.agents.base import Agent
from surveyor.envs.atari import AtariEnvs, rom
from surveyor.envs.functional import MINATAR, Functional, minatar
from surveyor.envs.host import GymnasiumEnvs, HostEnvs, VectorEnvs
from surveyor.errors import SurveyorError
from surveyor.runs.config import Config
from surveyor.training.host import HostRunner
from surveyor.training.runner import EpisodeRunner, FunctionalRunner, Runner

USUAL = (OrderEnforcing, PassiveEnvChecker, TimeLimit)
"""Wrappers that `gymnasium.make` puts around an environment by itself."""
STEPS = {"MinAtar": 1_000_000, "ALE": 50_000_000, "Gymnasium": 200_000}
"""Steps by default: on Atari those of the paper, 200 million frames."""


def family(name: str) -> str:
    """Tree, TiedTree or Chain, which are learnt by episodes; MinAtar, ALE or Gymnasium."""
    before = name.partition("/")[0]
    if before in ("MinAtar", "ALE") and "/" in name:
        return before
    tabular = name.partition("-")[0]
    if name in gymnasium.registry:  # somebody's own Tree-v0, say
        return "Gymnasium"
    if tabular in envs.FAMILIES or ("-" in name and envs.resembles(name)):
        return tabular
    return "Gymnasium"


def family_of(env: Any) -> str:
    """The same of an environment that was given as an object."""
    return env.name.partition("-")[0] if isinstance(env, envs.Environment) else "Gymnasium"


def preset_for(env: Any) -> str:
    """The family by which an agent chooses its preset: as those two, but Numbered for Gymnasium
    environments whose observations are the numbers of states."""
    kind = family(env) if isinstance(env, str) else family_of(env)
    keys = {"Tree": "tree", "TiedTree": "tree", "Chain": "chain", "MinAtar": "minatar"}
    if kind != "Gymnasium":
        return (keys | {"ALE": "atari"}).get(kind, "")
    return "numbered" if (_named if isinstance(env, str) else _numbered)(env) else "classic"


@functools.cache
def _named(name: str) -> bool:
    return _numbered(lambda: gymnasium.make(_gymnasium_spec(name)))


def _numbered(env: Any) -> bool:
    """What cannot be made is said when the run is to begin."""
    try:
        if isinstance(env, type) or not hasattr(env, "step"):
            env = env()
            env.close()
        space = getattr(env, "single_observation_space", getattr(env, "observation_space", None))
    except Exception:
        return False
    return isinstance(space, Discrete)


def check(name: str) -> str:
    """An error, in one sentence, where there is no environment of this name; else the name, of an
    Atari game in one spelling of the several that it may have."""
    kind = family(name)
    if kind == "MinAtar":
        minatar(name.partition("/")[2])
    elif kind == "ALE":
        return "ALE/" + "".join(word.capitalize() for word in rom(game(name)).split("_"))
    elif kind == "Gymnasium":
        _gymnasium_spec(name)
    else:
        return envs.named(name).name
    return name


def runner(config: Config) -> Runner:
    """The runner for a configuration."""
    source = config.source
    if source is not None:
        return _from_object(config, source)
    kind = family(config.env)
    if kind == "MinAtar":
        return FunctionalRunner(config, minatar(config.env.partition("/")[2]))
    if kind == "ALE":
        protocol = config.protocol or "paper"
        return HostRunner(config, lambda n: AtariEnvs(game(config.env), n, protocol))
    if kind == "Gymnasium":
        spec = _gymnasium_spec(config.env)
        return HostRunner(config, partial(_gymnasium, config.env, lambda: _made(spec)))
    return EpisodeRunner(config, envs.named(config.env))


def name_of(env: Any) -> str:
    """What an environment is called: its own name, or that of its class."""
    if isinstance(env, str):
        return env
    if isinstance(env, tuple) and env:  # with its parameters, as gymnax.make gives it
        return name_of(env[0])
    if isinstance(env, type) or (callable(env) and not hasattr(env, "step")):
        return _name_of_made(env)
    inner = getattr(env, "unwrapped", env)
    spec = getattr(inner, "spec", None)
    if not isinstance(spec, EnvSpec):
        return " ".join([str(getattr(env, "name", type(inner).__name__)), *_wrappers(env)])
    given = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    return " ".join([spec.id, *(f"{key}={value}" for key, value in given.items()), *_wrappers(env)])


def _wrappers(env: Any) -> list[str]:
    """Those around it that somebody has chosen: with them it is another environment."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        if not isinstance(env, USUAL):
            found.append(type(env).__name__)
        env = env.env
    return found[::-1]


def _name_of_made(make: Callable[[], Any]) -> str:
    """Of what a function makes: two functions that make different ones are not the same."""
    try:
        made = make()
        name = name_of(made)
        made.close()
    except Exception:  # it will be said when the run is to begin
        return getattr(make, "__name__", "function").strip("<>")
    return name


def fitted(agent: Agent, env: Any) -> Agent:
    """A preset for as many environments as the object is, or can be made into."""
    if isinstance(env, VectorEnv):
        every = agent.train_every
        fits = every % env.num_envs == 0 or (every and env.num_envs % every == 0)
        return dataclasses.replace(
            agent, envs=env.num_envs, train_every=every if fits else env.num_envs
        )
    # Of an object there is one; a function makes as many as are asked for.
    return dataclasses.replace(agent, envs=1) if isinstance(env, gymnasium.Env) else agent


def names() -> list[str]:
    """Environments that can be named outright, for a hint."""
    known = [f"{kind}-10" for kind in envs.FAMILIES] + [f"MinAtar/{game}" for game in MINATAR]
    return known + sorted(gymnasium.registry)


def _from_object(config: Config, env: Any) -> Runner:
    if isinstance(env, VectorEnv):
        if config.agent.envs != env.num_envs:
            raise SurveyorError(
                f"{config.env} has {env.num_envs} environments and the agent plays "
                f"{config.agent.envs}: set envs = {env.num_envs}."
            )
        again = lambda n: VectorEnvs(config.env, _copy(config.env, env))  # noqa: E731
        return HostRunner(config, lambda n: VectorEnvs(config.env, env), again)
    if isinstance(env, gymnasium.Env):
        again = partial(_gymnasium, config.env, lambda: _copy(config.env, env))
        return HostRunner(config, partial(_same_env, config.env, env), again)
    if isinstance(env, envs.Environment):
        return EpisodeRunner(config, env)
    if isinstance(env, Functional):
        return FunctionalRunner(config, env)
    env, params = env if isinstance(env, tuple) and len(env) == 2 else (env, None)
    if hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "default_params"):
        return FunctionalRunner(config, Functional.wrap(env, params, config.env))
    if callable(env):
        return HostRunner(config, partial(_gymnasium, config.env, env))
    raise SurveyorError(
        f"{type(env).__name__} is no environment that surveyor knows: give a name, a Gymnasium "
        "environment or vector environment, a function that makes one, or a functional one."
    )


def _copy(name: str, env: Any) -> Any:
    """Another one like it, for a test: training goes on with its own."""
    if isinstance(env, AsyncVectorEnv):  # a copy would close its processes' pipes
        return SyncVectorEnv(env.env_fns, autoreset_mode=env.metadata["autoreset_mode"])
    try:
        return copy.deepcopy(env)
    except Exception:
        raise SurveyorError(
            f"{name} cannot be copied for a test: give a function that makes it."
        ) from None


def _same_env(name: str, env: gymnasium.Env, count: int) -> HostEnvs:
    """The environment itself; more than one of it only where it can be made again."""
    if count == 1:
        return _gymnasium(name, lambda: env, 1)
    if env.spec is None:
        raise SurveyorError(
            f"{name} cannot be made {count} times from one object: give a function that makes it, "
            "or set envs = 1."
        )
    spec = env.spec
    return _gymnasium(name, lambda: gymnasium.make(spec), count)


def _made(spec: Any) -> gymnasium.Env:
    """With pictures where it can draw them, for a film."""
    creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
    if "rgb_array" not in getattr(creator, "metadata", {}).get("render_modes", ()):
        return gymnasium.make(spec)
    return gymnasium.make(spec, render_mode="rgb_array")


def _gymnasium(name: str, make: Callable[[], Any], count: int) -> HostEnvs:
    return GymnasiumEnvs(name, make, count)


def game(name: str) -> str:
    """The game's name: Pong from ALE/Pong, or from ALE/Pong-v5 as Gymnasium has it."""
    return name.partition("/")[2].partition("-v")[0]


def _gymnasium_spec(name: str) -> Any:
    """What Gymnasium knows by this name; `package:Name-v0` imports the package first."""
    try:
        package, _, rest = name.rpartition(":")
        if package:
            importlib.import_module(package)
        return gymnasium.spec(rest)
    except ModuleNotFoundError as error:
        raise SurveyorError(
            f"'{name}' needs the package '{error.name}', which is missing."
        ) from None
    except (ImportError, TypeError, ValueError) as error:
        raise SurveyorError(f"'{name}' names no package that can be loaded: {error}.") from None
    except gymnasium.error.Error:
        known = names()
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'?" if near else "`surveyor list envs` says what there is."
        raise SurveyorError(f"There is no environment '{name}'; {hint}") from None
