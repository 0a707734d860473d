"""The description of one kind of environment."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from surveyor.agents.options import Setting

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
    protocols: tuple[str, ...] = ()
    """Names of the ways in which its environments can be played; the first is the default."""
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
        return Setting(self.by_episodes or self.preset(name) == "numbered", self.by_episodes)

    @property
    def by_episodes(self) -> bool:
        """True if agents learn by episodes, False if they learn by steps."""
        return self.unit == "episodes"
