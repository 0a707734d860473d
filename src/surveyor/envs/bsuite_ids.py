"""The experiments of bsuite (Osband et al. 2020) by their id, such as bsuite/catch/0."""

import functools
from typing import TYPE_CHECKING, Any

from surveyor.envs.families import Family
from surveyor.errors import SurveyorError, imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.host import HostMaker

PREFIX = "bsuite/"
LENGTHS = {"bandit": 1, "mnist": 1, "memory_size": 2, "catch": 9, "discounting_chain": 100}
LENGTHS |= {"umbrella_distract": 20}
"""Steps of an episode, by the beginning of an experiment's name, where no setting tells."""
SETTINGS = {"size": 0, "chain_length": 0, "memory_length": 1}
"""Settings that tell the steps of an episode, and how many there are beside."""
LONGEST = 1_000


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


def _budget(name: str) -> int:
    """Return bsuite's number of episodes times their length, or 1,000 where that varies."""
    found, sweep = _id(name), _load().sweep
    given = sweep.SETTINGS[found]
    lengths = [int(given[key]) + more for key, more in SETTINGS.items() if key in given]
    lengths += [length for start, length in LENGTHS.items() if found.startswith(start)]
    return min(1_000_000, sweep.EPISODES[found] * [*lengths, LONGEST][0])


def _make(name: str, protocol: str | None = None) -> "HostMaker":
    from surveyor.envs.dm import DmEnv
    from surveyor.envs.host import GymnasiumEnvs, HostMaker

    found, load = _id(name), _load()
    experiment, settings = found.partition("/")[0], load.sweep.SETTINGS[found]
    # Not load_from_id, which prints to standard output.
    make = functools.partial(load.load, experiment, settings)
    return HostMaker(lambda count: GymnasiumEnvs(name, lambda: DmEnv(make()), count))


FAMILY = Family(
    name="bsuite",
    usage="bsuite/<id>",
    summary="The experiments of bsuite, such as bsuite/cartpole_swingup/5.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=lambda name: PREFIX + _id(name),
    make=_make,
    default_budget=_budget,
)
FAMILIES = (FAMILY,)
