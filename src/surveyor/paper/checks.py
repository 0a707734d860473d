"""Predictions beside measurements with confidence intervals, as numbers and as a picture."""

import dataclasses
import math
from pathlib import Path

import numpy as np
from scipy import stats

from surveyor import drawing


@dataclasses.dataclass(frozen=True)
class Check:
    """One prediction beside its measurement."""

    proposition: str
    case: str
    """What is measured."""
    relation: str
    """Relation of the measured number to the predicted one in theory: ≤, =, > or ≠."""
    predicted: float
    measured: float
    low: float
    """Lower end of the measured number's 95% interval, which may be widened by `compared`."""
    high: float

    @property
    def cells(self) -> list[str]:
        """Table cells, one for each of `HEADER`."""
        predicted, measured = f"{self.relation} {self.predicted:.4g}", f"{self.measured:.4g}"
        interval, holds = f"{self.low:.4g} – {self.high:.4g}", "yes" if self.holds else "NO"
        return [self.proposition, self.case, predicted, measured, interval, holds]

    @property
    def holds(self) -> bool:
        """True if the interval is consistent with the prediction (for > and ≠: shows it)."""
        return {
            "≤": self.low <= self.predicted,
            "=": self.low <= self.predicted <= self.high,
            ">": self.low > self.predicted,
            "≠": not self.low <= self.predicted <= self.high,
        }[self.relation]


HEADER = ["proposition", "case", "predicted", "measured", "95% interval", "holds"]


def share(successes: int, draws: int) -> tuple[float, float, float]:
    """Return a probability with its exact 95% interval (Clopper and Pearson)."""
    low = stats.beta.ppf(0.025, successes, draws - successes + 1) if successes else 0.0
    high = stats.beta.ppf(0.975, successes + 1, draws - successes) if successes < draws else 1.0
    return successes / draws, float(low), float(high)


def compared(expected: int, found: int, draws: int) -> tuple[float, float, float, float]:
    """Return an estimated prediction, then the measured probability with a widened 95% interval.

    The prediction, `expected` of as many draws, has an error too. It is inside the interval if its
    own 95% interval and that of the measured probability overlap.
    """
    predicted, least, most = share(expected, draws)
    measured, low, high = share(found, draws)
    return predicted, measured, low - (most - predicted), high + (predicted - least)


def geometric_median(p: float) -> float:
    """Return the median of a geometric distribution, as the paper has it: -1 / log2(1 - p)."""
    return math.inf if p <= 0 else 0.0 if p >= 1 else -1 / math.log2(1 - p)


def pieces(draws: int, size: int = 20_000) -> list[int]:
    """Return the sizes of parts of `draws` draws, each of at most `size` to fit into memory."""
    return [min(size, draws - start) for start in range(0, draws, size)]


def draw(panels: dict[str, list[Check]], path: Path) -> Path:
    """Draw a panel for each title: measured against predicted, but for numbers 0 or infinite."""
    figure = drawing.new_figure(3.0 * len(panels), 3.6)
    for axes, (title, checks) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        shown = [c for c in checks if 0 < c.measured < np.inf and c.predicted < np.inf]
        x, y = [c.predicted for c in shown], [c.measured for c in shown]
        below = [c.measured - c.low for c in shown]
        above = [min(c.high, 1e9) - c.measured for c in shown]
        style = {"fmt": "o", "ms": 4, "color": drawing.BLUE, "ecolor": drawing.GREY, "lw": 1}
        axes.errorbar(x, y, yerr=[below, above], **style)
        low, high = min(x + y), max(x + y)
        if high > 10 * low:
            axes.set(xscale="log", yscale="log")
            low, high = low / 1.5, high * 1.5
        axes.plot([low, high], [low, high], color=drawing.GREY, ls="--", lw=1)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("predicted")
        drawing.open_frame(axes)
    figure.axes[0].set_ylabel("measured")
    return drawing.save(figure, path)
