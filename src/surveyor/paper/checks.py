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
    """Number of the proposition."""
    case: str
    """What is measured."""
    relation: str
    """Relation of the measured number to the predicted one in theory: ≤, =, > or ≠."""
    predicted: float
    """The theory's number."""
    measured: float
    """The measured number."""
    low: float
    """Lower end of the 95% confidence interval of the measured number."""
    high: float
    """Upper end of that interval."""

    @property
    def holds(self) -> bool:
        """True if the interval is consistent with the prediction (for > and ≠: shows it)."""
        return {
            "≤": self.low <= self.predicted,
            "=": self.low <= self.predicted <= self.high,
            ">": self.low > self.predicted,
            "≠": not self.low <= self.predicted <= self.high,
        }[self.relation]


def share(successes: int, draws: int) -> tuple[float, float, float]:
    """Return a probability with its exact 95% interval (Clopper and Pearson)."""
    low = stats.beta.ppf(0.025, successes, draws - successes + 1) if successes else 0.0
    high = stats.beta.ppf(0.975, successes + 1, draws - successes) if successes < draws else 1.0
    return successes / draws, float(low), float(high)


def geometric_median(p: float) -> float:
    """Return the median of a geometric distribution, as the paper has it: -1 / log2(1 - p)."""
    return math.inf if p <= 0 else 0.0 if p >= 1 else -1 / math.log2(1 - p)


def pieces(draws: int, size: int = 20_000) -> list[int]:
    """Return the sizes of parts of `draws` draws, each of at most `size` to fit into memory."""
    return [min(size, draws - start) for start in range(0, draws, size)]


def draw(panels: dict[str, list[Check]], path: Path) -> Path:
    """Draw every check as a point: measured against predicted, with intervals.

    **Arguments:**

    - `panels`: the checks by the title of their panel; numbers that are 0 or infinite are left out.
    - `path`: the file to write; it is returned.
    """
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
            axes.set_xscale("log")
            axes.set_yscale("log")
            low, high = low / 1.5, high * 1.5
        axes.plot([low, high], [low, high], color=drawing.GREY, ls="--", lw=1)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("predicted")
        drawing.open_frame(axes)
    figure.axes[0].set_ylabel("measured")
    return drawing.save(figure, path)
