"""Strategies, by name: which transitions of a replay make up a batch."""

import abc
import dataclasses
import pkgutil
import re
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Float, Int, PyTree

from surveyor.errors import SurveyorError, unknown
from surveyor.replay.ring import Ring
from surveyor.types import Batch, HostArrays

Numbers = Int[HostArrays, "*b"]
Floats = Float[HostArrays, "*b"]


@runtime_checkable
class Replay(Protocol):
    """Stored transitions, from which batches are drawn."""

    def add(self, *args: Any, **kwargs: Any) -> "Replay":
        """Append new transitions; the oldest are overwritten."""
        ...

    def sample(self, u: Floats) -> Batch:
        """Return the batch that the strategy draws with uniform random numbers."""
        ...

    def update_priorities(self, number: Numbers, errors: Floats) -> "Replay":
        """Draw these transitions by their new errors, if the strategy has priorities."""
        ...

    def split(self) -> tuple[Ring, "Replay"]:
        """Return the rows that do not change once they are written, and the replay without them."""
        ...

    def joined(self, ring: Ring) -> "Replay":
        """Return a replay without rows, as `split` left it, with these rows."""
        ...


class Draw(NamedTuple):
    """The transitions of a batch."""

    number: Numbers
    """Position of each in the whole run's sequence of transitions."""
    row: Numbers | None = None
    """Row of the storage that holds it, where that does not follow from its number."""
    weight: Floats | None = None
    """Weight in the losses, where transitions were not drawn uniformly."""


@dataclasses.dataclass(frozen=True)
class Strategy(abc.ABC):
    """A rule that draws transitions, given uniform random numbers."""

    scope: ClassVar[str] = ""
    """The runs that can use it, episodes or steps; empty for both."""
    prioritised: ClassVar[bool] = False
    """True if the replay has to keep a priority for every transition."""

    @abc.abstractmethod
    def draw(self, replay: Any, u: Floats) -> Draw:
        """Return the transitions that uniform random numbers choose."""

    def check(self, batch_size: int) -> None:  # noqa: B027
        """Raise `SurveyorError` if batches of this size cannot be drawn."""

    def priorities(self, errors: Floats) -> Floats:
        """Return the priorities of transitions with these errors: their size, by default."""
        return abs(errors)


@dataclasses.dataclass(frozen=True)
class Uniform(Strategy):
    """All stored transitions alike, with replacement."""

    def draw(self, replay: Any, u: Floats) -> Draw:
        return Draw(replay.uniform(u))


@dataclasses.dataclass(frozen=True)
class Prioritised(Strategy):
    """In proportion to |error|^α (Schaul et al. 2016), with importance weights."""

    scope: ClassVar[str] = "steps"
    prioritised: ClassVar[bool] = True
    FLOOR: ClassVar[float] = 1e-3
    """Added to every error, so that nothing is forgotten."""
    CORRECTION: ClassVar[float] = 0.5
    """Share of the bias that the weights correct: β of Schaul et al."""

    alpha: float = 0.6
    """Exponent of errors: 0 would be uniform."""

    def check(self, batch_size: int) -> None:
        if not 0 < self.alpha < float("inf"):
            raise SurveyorError(f"α of prioritised(α) must be above 0, not {self.alpha:g}.")

    def draw(self, replay: Any, u: Floats) -> Draw:
        xp, (number, size, sums, count) = replay.xp, replay.by_priority(u)
        share = size / sums * count
        # Rounding of the sums may draw a transition of priority 0, once in millions: weight 0.
        weight = xp.where(share > 0, xp.maximum(share, 1e-6) ** -self.CORRECTION, 0.0)
        return Draw(number, weight=(weight / xp.max(weight)).astype(xp.float32))

    def priorities(self, errors: PyTree) -> PyTree:
        """Return (|error| + floor)^α."""
        return (abs(errors) + self.FLOOR) ** self.alpha


@dataclasses.dataclass(frozen=True)
class RecentAndBest(Strategy):
    """In a batch `recent` of the newest episode, `best` of the best, all others uniformly."""

    scope: ClassVar[str] = "episodes"

    recent: int = 0
    best: int = 0

    def check(self, batch_size: int) -> None:
        counts = (self.recent, self.best)
        if min(counts) < 0 or sum(counts) > batch_size:
            raise SurveyorError(
                f"RECENT and BEST of recent-and-best must be at least 0, together at most "
                f"batch_size = {batch_size}, not {self.recent} and {self.best}."
            )

    def draw(self, replay: Any, u: Floats) -> Draw:
        """Return the recent ones first, then those of the best episode, then the others."""
        place = jnp.arange(len(u))
        recent, best = self.recent, self.best
        number = jnp.where(place < recent, replay.newest_episode(u), replay.uniform(u))
        if not best:
            return Draw(number)
        chosen = (recent <= place) & (place < recent + best)
        of_best, row = replay.best_episode(u)
        row = jnp.where(chosen, row, number % replay.capacity)
        return Draw(jnp.where(chosen, of_best, number), row)


STRATEGIES: dict[str, str | type[Strategy]] = {
    "uniform": Uniform,
    "prioritised": Prioritised,
    "recent-and-best": RecentAndBest,
}
"""Classes, or `module:Class` of one in another file."""


def register(name: str, strategy: type[Strategy]) -> None:
    """Add a strategy under a name that is not taken."""
    if STRATEGIES.setdefault(name, strategy) is not strategy:
        raise SurveyorError(f"There is a replay strategy '{name}' already; choose another name.")


def strategy(text: str) -> Strategy:
    """Return the strategy that an option names, such as `uniform` or `prioritised(0.6)`.

    Raise `SurveyorError` if there is none of this name or its numbers do not fit.
    """
    found = re.fullmatch(r"\s*([\w-]+)\s*(?:\(([^()]*)\))?\s*", text)
    if found is None:
        raise SurveyorError(f"A replay strategy is a name such as prioritised(0.6), not '{text}'.")
    name, numbers = found[1], found[2].split(",") if (found[2] or "").strip() else []
    if name not in STRATEGIES:
        raise unknown("replay strategy", name, STRATEGIES)
    kind: Any = STRATEGIES[name]
    kind = pkgutil.resolve_name(kind) if isinstance(kind, str) else kind
    fields: Any = dataclasses.fields(kind)[: len(numbers)]
    try:
        return kind(*[field.type(one) for field, one in zip(fields, numbers, strict=True)])
    except ValueError:  # one of another type, or too many
        said = f"has numbers that the strategy {name} does not take"
        raise SurveyorError(f"'{text}' {said}.") from None


def fitting(text: str, scope: str) -> Strategy:
    """Return a strategy for runs by `scope`; raise `SurveyorError` if it is for others only."""
    found = strategy(text)
    if found.scope not in ("", scope):
        those = f"environments that are learnt by {found.scope}"
        raise SurveyorError(f"The replay strategy {text} is for {those}.")
    return found
