"""Environments by their Gymnasium id, such as CartPole-v1 or my_package:MyEnv-v0."""

import difflib
import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.host import HostMaker


def registered() -> list[str]:
    """Return the ids that Gymnasium knows."""
    import gymnasium

    return sorted(gymnasium.registry)


def _make(name: str, protocol: str | None = None) -> "HostMaker":
    from surveyor.envs.host import GymnasiumEnvs, HostMaker

    spec = _spec(name)
    return HostMaker(lambda count: GymnasiumEnvs(name, lambda: _made(spec), count))


def _made(spec: Any) -> Any:
    """Make an environment, with pictures for films if it can draw them."""
    import gymnasium
    from gymnasium.envs.registration import load_env_creator

    creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
    if "rgb_array" not in getattr(creator, "metadata", {}).get("render_modes", ()):
        return gymnasium.make(spec)
    return gymnasium.make(spec, render_mode="rgb_array")


@functools.cache
def _numbered(name: str) -> bool:
    import gymnasium

    return numbered(lambda: gymnasium.make(_spec(name)))


def numbered(env: Any) -> bool:
    """Return whether observations are numbers of states.

    `env` is an environment, a vector environment, or a function that makes one.
    """
    from gymnasium.spaces import Discrete

    try:
        if isinstance(env, type) or not hasattr(env, "step"):
            env = env()
            env.close()
        space = getattr(env, "single_observation_space", getattr(env, "observation_space", None))
    except Exception:  # raised again, with a message, when the run begins
        return False
    return isinstance(space, Discrete)


def require_imported(name: str) -> None:
    """Raise `SurveyorError` if an id is of a package that nothing has imported yet.

    A run folder that somebody else made must not decide which code is imported.
    """
    package = name.rpartition(":")[0]
    if package and package not in sys.modules:
        raise SurveyorError(
            f"The environment '{name}' is of the package '{package}', which a run folder does not "
            f"import by itself: import it first, on the command line with --import {package}."
        )


def _spec(name: str) -> Any:
    """Return Gymnasium's entry of an id; `package:Name-v0` imports the package first."""
    import gymnasium

    from surveyor.envs import families

    try:
        package, _, rest = name.rpartition(":")
        if package:
            importlib.import_module(package)
        return gymnasium.spec(rest)
    except ModuleNotFoundError as error:
        raise SurveyorError(f"'{name}' needs the package '{error.name}' to be installed.") from None
    except (ImportError, TypeError, ValueError) as error:
        raise SurveyorError(f"'{name}' names no package that can be loaded: {error}.") from None
    except gymnasium.error.Error:  # no family has this name
        found = [each for family in families.known() for each in family.candidates(name)]
        known = {each.lower(): each for each in found}
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
        hint = f"did you mean '{known[near[0]]}'?" if near else "`surveyor list envs` lists them."
        raise SurveyorError(f"There is no environment '{name}'; {hint}") from None


FAMILY = Family(
    name="Gymnasium",
    usage="<Gymnasium id>",
    summary="Any registered id, such as CartPole-v1 or my_package:MyEnv-v0.",
    matches=lambda name: True,
    canonical=lambda name: _spec(name) and name,
    make=_make,
    preset=lambda name: "numbered" if _numbered(name) else "classic",
    numbered=_numbered,
    candidates=lambda name: registered(),
)
FAMILIES = (FAMILY,)
