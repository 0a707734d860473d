"""MiniGrid and BabyAI (Chevalier-Boisvert et al. 2023) by their Gymnasium ids."""

import functools
import importlib.util
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.errors import imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional
    from surveyor.envs.host import HostMaker

PREFIXES = ("MiniGrid-", "BabyAI-")


def _ids() -> list[str]:
    """Return the ids that minigrid registers with Gymnasium."""
    import gymnasium

    imported("minigrid", "minigrid", "minigrid", "MiniGrid")
    return sorted(name for name in gymnasium.registry if name.startswith(PREFIXES))


def _canonical(name: str) -> str:
    known = _ids()
    if name not in known:
        near = [each for each in known if each.startswith(name.partition("-")[0])]
        raise unknown("environment", name, near)
    return name


def _candidates(name: str) -> list[str]:
    """Return the ids for a name that begins nearly alike; minigrid takes a second to import."""
    alike = name.lower().startswith(tuple(prefix[:4].lower() for prefix in PREFIXES))
    return _ids() if alike and importlib.util.find_spec("minigrid") else []


def _make(name: str, protocol: str | None = None) -> "HostMaker | Functional":
    _canonical(name)
    if protocol == "compiled":
        return _compiled(name)
    from surveyor.envs.host import GymnasiumEnvs, HostMaker

    full = protocol == "full-view"
    return HostMaker(lambda count: GymnasiumEnvs(name, lambda: _made(name, full), count))


@functools.cache
def _compiled(name: str) -> "Functional":
    from surveyor.envs.boards import Boards
    from surveyor.envs.functional import Functional

    return Functional.wrap(Boards.of(name))


def _made(name: str, full: bool) -> Any:
    import gymnasium
    import numpy as np
    from minigrid.wrappers import FullyObsWrapper

    from surveyor.envs.stepping import SYMBOLS

    env = gymnasium.make(name, render_mode="rgb_array")
    env = FullyObsWrapper(env) if full else env
    seen: Any = env.observation_space
    image = seen["image"]
    high = np.broadcast_to(SYMBOLS, image.shape)  # MiniGrid says 255
    image = gymnasium.spaces.Box(0, high, image.shape, np.uint8)
    space = gymnasium.spaces.Dict({**seen, "image": image})
    return gymnasium.wrappers.TransformObservation(env, lambda obs: obs, space)


FAMILY = Family(
    name="MiniGrid",
    usage="MiniGrid-<id>",
    summary="The grids of MiniGrid, and BabyAI-<id>; --full-view shows the whole grid.",
    matches=lambda name: name.startswith(PREFIXES),
    canonical=_canonical,
    make=_make,
    default_budget=lambda name: 500_000,
    protocols={
        "partial-view": "the agent sees 7 × 7 places in front of it",
        "full-view": "the agent sees the whole grid",
        "compiled": "the whole grid, by MiniGrid's rules in JAX on 1,000 boards that it drew",
    },
    preset=lambda name: "grid",
    candidates=_candidates,
)
FAMILIES = (FAMILY,)
