"""A prediction beside its measurement, with a confidence interval."""

import dataclasses
import math

from scipy import stats


@dataclasses.dataclass(frozen=True)
class Check:
    """One prediction beside its measurement."""

    proposition: str
    case: str
    relation: str
    """How the measured number should stand to the predicted one: ≤, =, >, or ≠."""
    predicted: float
    measured: float
    low: float
    high: float
    """The 95% confidence interval of the measured number."""

    @property
    def holds(self) -> bool:
        """Whether the interval is consistent with the prediction (for > and ≠: shows it)."""
        return {
            "≤": self.low <= self.predicted,
            "=": self.low <= self.predicted <= self.high,
            ">": self.low > self.predicted,
            "≠": not self.low <= self.predicted <= self.high,
        }[self.relation]


def share(successes: int, draws: int) -> tuple[float, float, float]:
    """A probability with its exact 95% interval (Clopper and Pearson)."""
    low = stats.beta.ppf(0.025, successes, draws - successes + 1) if successes else 0.0
    high = stats.beta.ppf(0.975, successes + 1, draws - successes) if successes < draws else 1.0
    return successes / draws, float(low), float(high)


def geometric_median(p: float) -> float:
    """The median of a geometric distribution, as the paper has it: -1 / log2(1 - p)."""
    return math.inf if p <= 0 else 0.0 if p >= 1 else -1 / math.log2(1 - p)


def pieces(draws: int, size: int = 20_000) -> list[int]:
    """Draws in pieces that fit into memory."""
    return [min(size, draws - start) for start in range(0, draws, size)]
