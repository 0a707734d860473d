"""Environment families. A new one is one file and its name in `MODULES`."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from surveyor import plugins
from surveyor.agents.options import Setting
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor.envs.base import Environment
    from surveyor.envs.functional import Functional
    from surveyor.envs.host import HostMaker

    Source = Environment | Functional | HostMaker
else:
    Source = Any  # this module must not import JAX


@dataclasses.dataclass(frozen=True)
class Family:
    """One kind of environment: its names, and how runs on it are trained, scored and shown.

    Functions take the name of an environment. Import JAX and other heavy packages inside them:
    lists and `--help` read families without making environments.
    """

    name: str
    """Name of the family, such as Tree."""
    usage: str
    """Form of its environments' names, such as Tree-<L>."""
    summary: str
    """One line for `surveyor list envs`."""
    matches: Callable[[str], bool]
    """Return True if a name belongs to this family, even if no such environment exists."""
    make: Callable[[str, str | None], Source]
    """Return the environment of a canonical name, played by a protocol (None: the default)."""
    canonical: Callable[[str], str] = str
    """Return the one spelling of a name; raise `SurveyorError` if there is no such environment."""
    unit: Literal["episodes", "steps", "frames"] = "steps"
    """Unit in which people count training. Budgets in frames are stored as steps."""
    frames_per_step: int = 1
    """Frames that an action is held for."""
    default_budget: Callable[[str], int] = lambda name: 200_000
    """Return the training budget in episodes, or in steps where the unit is steps or frames."""
    preset: Callable[[str], str] = lambda name: "classic"
    """Return the kind of problem by which agents choose hyperparameters: tree, chain, minatar,
    atari, classic or numbered."""
    numbered: Callable[[str], bool] = lambda name: False
    """Return True if observations are the numbers of states, which agents learn as tables."""
    protocols: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Ways to play its environments, each with a description; the first is the default."""
    evaluation_episodes: int = 10
    """Episodes of an evaluation, unless told otherwise."""
    steps_per_second: float = 550.0
    """Training steps per second on one core, for estimates; unused where the unit is episodes."""
    alike: bool = False
    """True if its environments take about the same memory, so that one estimate serves all."""
    reference: Callable[[str], tuple[float, float] | None] = lambda name: None
    """Return the scores that count as 0 and as 1, or None if they are unknown."""
    scale: str = ""
    """What the reference scores are, for captions."""
    shows: Literal["map", "episode", "observations"] = "observations"
    """What a report shows beliefs on: a map of states, a played episode, or some observations."""
    size: Callable[[str], int | None] = lambda name: None
    """Return the size of a problem, or None if the family has no sizes."""
    candidates: Callable[[str], list[str]] = lambda name: []
    """Return valid names that a misspelt one could mean, for error messages."""

    def setting(self, name: str) -> Setting:
        """Return the facts about an environment that decide which options have an effect."""
        return Setting(self.numbered(name), self.by_episodes)

    @property
    def by_episodes(self) -> bool:
        """True if agents learn by episodes, False if they learn by steps."""
        return self.unit == "episodes"


MODULES = (
    "paper_problems",
    "deep_sea",
    "small_problems",
    "minatar",
    "atari",
    "bsuite_ids",
    "minigrid_ids",
)
MODULES += ("gymnax_ids", "navix_ids", "craftax_ids", "gymnasium_ids")
FAMILIES: list[Family] = [
    family
    for module in MODULES
    for family in importlib.import_module(f"surveyor.envs.{module}").FAMILIES
]
"""Known families; the first that matches a name has it, and Gymnasium's matches every name."""
ENTRY_POINTS = "surveyor.families"
"""Entry point group of packages with families; each is a `Family`."""
_pending = [ENTRY_POINTS]
"""Entry point groups that have not been read yet."""


def register(family: Family) -> None:
    """Add a family; it is asked before those registered earlier.

    **Arguments:**

    - `family`: the description. Its name must be new; raise `SurveyorError` if it is taken.

    A family is known to the process that registers it. Call this at the top level of a module that
    worker processes import too: the script that starts the training, or a module that the command
    line is told to `--import`.
    """
    if not isinstance(family, Family):
        raise SurveyorError(f"it is {type(family).__name__}, not a Family")
    if any(other.name == family.name for other in FAMILIES):
        raise SurveyorError(f"There already is an environment family '{family.name}'.")
    FAMILIES.insert(0, family)


def known() -> list[Family]:
    """Return every known family, those of installed packages included."""
    if _pending:
        plugins.load_entry_points(_pending.pop(), register)
    return FAMILIES


def find(name: str) -> Family:
    """Return the family of an environment's name; Gymnasium's if no other matches."""
    return next(family for family in known() if family.matches(name))


def of(env: Any) -> Family:
    """Return the family of an environment that `surveyor.train` takes, by name or as an object.

    The `make` of an object's family returns that object.
    """
    if isinstance(env, str):
        return find(env)
    from surveyor.envs import objects

    return objects.family(env)
