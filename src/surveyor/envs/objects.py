"""Environments that a user passes as objects: their names, families and sources."""

import contextlib
import copy
import dataclasses
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from surveyor.agents.base import Agent
from surveyor.envs import dm, families, gymnasium_ids
from surveyor.envs.base import Environment
from surveyor.envs.families import Family, Source
from surveyor.envs.functional import Functional
from surveyor.envs.host import GymnasiumEnvs, HostEnvs, HostMaker
from surveyor.envs.vector import VectorEnvs
from surveyor.errors import SurveyorError

DEFAULT_WRAPPERS = (OrderEnforcing, PassiveEnvChecker, TimeLimit)
"""Wrappers that `gymnasium.make` adds by itself."""


def family(env: Any) -> Family:
    """Return the family of an environment passed as an object; its `make` returns the object."""
    env = _adapted(env)
    changes: dict[str, Any] = {"make": lambda name, protocol: source(env, name)}
    if not isinstance(env, Environment):
        changes["numbered"] = lambda name: _numbered(env)
        changes["preset"] = lambda name: "numbered" if _numbered(env) else "classic"
        return dataclasses.replace(gymnasium_ids.FAMILY, **changes)
    known = families.find(env.name)
    if not known.by_episodes:
        changes["preset"] = lambda name: ""
    changes |= {"unit": "episodes", "default_budget": lambda name: env.default_episodes}
    return dataclasses.replace(known, **changes)


def _adapted(env: Any) -> Any:
    """Return dm_env's environments behind Gymnasium's interface, also those of a function."""
    if not isinstance(env, type) and (not callable(env) or hasattr(env, "step")):
        return dm.adapted(env)
    known: dict[int, Any] = {}

    def make() -> Any:
        adapted = dm.adapted(made := env())
        return made if adapted is made else known.setdefault(id(made), adapted)

    return make


def _numbered(env: Any) -> bool:
    if isinstance(env, tuple) or hasattr(env, "default_params"):
        env = source(env, name_of(env))
    return env.spec.tabular if isinstance(env, Functional) else gymnasium_ids.numbered(env)


def source(env: Any, name: str) -> Source:
    """Return what a runner needs to play an environment; raise `SurveyorError` if it is none."""
    env = _adapted(env)
    if isinstance(env, VectorEnv):
        return HostMaker(
            lambda count: _same_vector_env(name, env, count),
            lambda count: VectorEnvs(name, _copy(name, env)),
        )
    if isinstance(env, gymnasium.Env):
        return HostMaker(
            lambda count: _same_env(name, env, count),
            lambda count: GymnasiumEnvs(name, lambda: _copy(name, env), count),
        )
    if isinstance(env, Environment | Functional):
        return env
    env, params = env if isinstance(env, tuple) and len(env) == 2 else (env, None)
    if hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "default_params"):
        return Functional.wrap(env, params, name)
    if callable(env):
        return HostMaker(lambda count: GymnasiumEnvs(name, env, count))
    raise SurveyorError(
        f"{type(env).__name__} is not an environment: give a name, a Gymnasium environment or "
        "vector environment, one of dm_env, a function that makes one, or a functional environment."
    )


def name_of(env: Any) -> str:
    """Return the name of an environment, or of what a function makes: its own or its class's."""
    if isinstance(env, str):
        return env
    if isinstance(env, tuple) and env:  # with its parameters, as gymnax.make returns it
        return name_of(env[0])
    if isinstance(env, type) or (callable(env) and not hasattr(env, "step")):
        try:
            made: Any = env()
            with contextlib.closing(made):
                return name_of(made)
        except Exception:  # raised again, with a message, when the run begins
            return getattr(env, "__name__", "function").strip("<>")
    inner = getattr(env, "unwrapped", env)
    spec = getattr(inner, "spec", None)
    if not isinstance(spec, EnvSpec):
        return " ".join([str(getattr(env, "name", type(inner).__name__)), *_wrappers(env)])
    given = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    return " ".join([spec.id, *(f"{key}={value}" for key, value in given.items()), *_wrappers(env)])


def fit(agent: Agent, env: Any) -> Agent:
    """Return a preset adapted to the number of environments that an object is."""
    env = _adapted(env)
    count = env.num_envs if isinstance(env, VectorEnv) else 1
    if not isinstance(env, VectorEnv | gymnasium.Env) or agent.schedule.envs == count:
        return agent
    every = agent.schedule.every
    fits = every % count == 0 or (every and count % every == 0)
    changes = {"envs": count, "train_every": every if fits else count}
    known = {field.name for field in dataclasses.fields(agent)}
    return dataclasses.replace(agent, **{k: v for k, v in changes.items() if k in known})


def _wrappers(env: Any) -> list[str]:
    """Return the wrappers that the user chose: with them it is another environment."""
    found = []
    while isinstance(env, gymnasium.Wrapper):
        if not isinstance(env, DEFAULT_WRAPPERS):
            found.append(type(env).__name__)
        env = env.env
    return found[::-1]


def _copy(name: str, env: Any) -> Any:
    """Return a copy for evaluation, so that training keeps its own environment."""
    if isinstance(env, AsyncVectorEnv):  # a copy would close its processes' pipes
        return SyncVectorEnv(env.env_fns, autoreset_mode=env.metadata["autoreset_mode"])
    try:
        return copy.deepcopy(env)
    except Exception:
        said = "cannot be copied for an evaluation: give a function that makes it"
        raise SurveyorError(f"{name} {said}.") from None


def _same_env(name: str, env: gymnasium.Env, count: int) -> HostEnvs:
    """Return the environment itself; make more than one only if Gymnasium knows how."""
    if count == 1:
        return GymnasiumEnvs(name, lambda: env, 1)
    if (spec := env.spec) is None:
        said = f"cannot be made {count} times from one object"
        raise SurveyorError(f"{name} {said}: give a function that makes it, or set envs = 1.")
    return GymnasiumEnvs(name, lambda: gymnasium.make(spec), count)


def _same_vector_env(name: str, env: VectorEnv, count: int) -> HostEnvs:
    if count != env.num_envs:
        said = f"has {env.num_envs} environments and the agent plays {count}"
        raise SurveyorError(f"{name} {said}: set envs = {env.num_envs}.")
    return VectorEnvs(name, env)
