"""The experiments of bsuite (Osband et al. 2020) by their id, such as bsuite/catch/0."""

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from surveyor.envs.families import Family
from surveyor.errors import SurveyorError, imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional
    from surveyor.envs.host import HostMaker

PREFIX = "bsuite/"
LENGTHS = {"bandit": 1, "mnist": 1, "memory_size": 2, "catch": 9, "discounting_chain": 100}
LENGTHS |= {"umbrella_distract": 20}
"""Steps of an episode, by the beginning of an experiment's name, where no setting tells."""
SETTINGS = {"size": 0, "chain_length": 0, "memory_length": 1}
"""Settings that tell the steps of an episode, and how many there are beside."""
LONGEST = 1_000


class Solved(NamedTuple):
    """When bsuite's analysis takes a size of DeepSea for solved."""

    share: float
    """Share of bad episodes to fall below."""
    earliest: int
    """First episode that counts."""


SEAS = {"deep_sea": Solved(0.9, 1), "deep_sea_stochastic": Solved(0.8, 100)}
SWING_UP = "cartpole_swingup"
UPRIGHT = ("height_threshold", "x_reward_threshold")
"""Settings of the swing-up."""


def _load() -> Any:
    return imported("bsuite.bsuite", "bsuite", "bsuite", "bsuite")


def _id(name: str) -> str:
    """Return bsuite's id; raise `SurveyorError` if there is no such experiment."""
    load, given = _load(), name.removeprefix(PREFIX)
    if given in load.sweep.SETTINGS:
        return given
    experiment, known = given.partition("/")[0], load.EXPERIMENT_NAME_TO_ENVIRONMENT
    if experiment not in known:
        raise unknown("environment", name, [f"{PREFIX}{each}/0" for each in known])
    last = sum(each.startswith(f"{experiment}/") for each in load.sweep.SETTINGS) - 1
    hint = f"'{PREFIX}{experiment}/0' to '{PREFIX}{experiment}/{last}'"
    raise SurveyorError(f"There is no environment '{name}'; there are {hint}.")


def names(experiment: str) -> list[str]:
    """Return the environments of an experiment, one for each setting."""
    known = _load().sweep.SETTINGS
    return [f"{PREFIX}{each}" for each in known if each.partition("/")[0] == experiment]


def settings(name: str) -> dict[str, Any]:
    """Return the settings of an environment."""
    return dict(_load().sweep.SETTINGS[_id(name)])


def _budget(name: str) -> int:
    """Return bsuite's number of episodes times their length, or 1,000 where that varies."""
    found, sweep = _id(name), _load().sweep
    given = sweep.SETTINGS[found]
    lengths = [int(given[key]) + more for key, more in SETTINGS.items() if key in given]
    lengths += [length for start, length in LENGTHS.items() if found.startswith(start)]
    return min(1_000_000, sweep.EPISODES[found] * [*lengths, LONGEST][0])


def _make(name: str, protocol: str | None = None) -> "HostMaker | Functional":
    if protocol == "compiled":
        return _compiled(name)
    from surveyor.envs.dm import DmEnv
    from surveyor.envs.host import GymnasiumEnvs, HostMaker

    found, load = _id(name), _load()
    experiment, settings = found.partition("/")[0], load.sweep.SETTINGS[found]
    # Not load_from_id, which prints to standard output.
    make = functools.partial(load.load, experiment, settings)
    return HostMaker(lambda count: GymnasiumEnvs(name, lambda: DmEnv(make()), count))


@functools.cache  # runs with the same object share a compiled program
def _compiled(name: str) -> "Functional":
    """Return an environment that is stepped in JAX, and counts as bsuite does."""
    from surveyor.envs.functional import Functional
    from surveyor.envs.sea import DeepSea
    from surveyor.envs.swingup import SwingUp
    from surveyor.envs.tally import Tallied

    found, sweep = _id(name), _load().sweep
    settings, episodes = sweep.SETTINGS[found], sweep.EPISODES[found]
    if (experiment := found.partition("/")[0]) in SEAS:
        sea = DeepSea(settings["size"], experiment != "deep_sea")
        seed = settings["mapping_seed"]
        env = Tallied(sea, name, episodes, *SEAS[experiment], mapping_seed=seed)
    elif experiment == SWING_UP:
        env = Tallied(SwingUp(*(settings[key] for key in UPRIGHT)), name, episodes)
    else:
        known = ", ".join(each for each in (*SEAS, SWING_UP))
        raise SurveyorError(f"{name} cannot be compiled; of bsuite's experiments {known} can.")
    return Functional.wrap(env)


FAMILY = Family(
    name="bsuite",
    usage="bsuite/<id>",
    summary="The experiments of bsuite, such as bsuite/cartpole_swingup/5.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=lambda name: PREFIX + _id(name),
    make=_make,
    default_budget=_budget,
    protocols={
        "bsuite": "bsuite's own environment",
        "compiled": "the same in JAX: deep_sea, deep_sea_stochastic and cartpole_swingup",
    },
)
FAMILIES = (FAMILY,)
