"""MiniGrid and BabyAI (Chevalier-Boisvert et al. 2023) by their Gymnasium ids."""

import importlib.util
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.errors import imported, unknown

if TYPE_CHECKING:
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


def _make(name: str, protocol: str | None = None) -> "HostMaker":
    from surveyor.envs.host import GymnasiumEnvs, HostMaker

    _canonical(name)
    full = protocol == "full-view"
    return HostMaker(lambda count: GymnasiumEnvs(name, lambda: _made(name, full), count))


def _made(name: str, full: bool) -> Any:
    import gymnasium
    from minigrid.wrappers import FullyObsWrapper

    env = gymnasium.make(name, render_mode="rgb_array")
    return FullyObsWrapper(env) if full else env


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
    },
    candidates=_candidates,
)
FAMILIES = (FAMILY,)
