"""Every result of the paper by name. A new result is one file and one line in `RESULTS`."""

import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

from surveyor.paper import options


class Result(NamedTuple):
    """A figure, table or other result of the paper, as the command line knows it."""

    name: str
    help: str
    options: type[Any]
    """Dataclass of its command-line options."""
    target: str
    """`module:function` in this package, imported when it is needed; takes the options."""

    def load(self) -> Callable[[Any], None]:
        """Return the function that reproduces the result."""
        return pkgutil.resolve_name(f"surveyor.paper.{self.target}")


RESULTS = (
    Result("fig2", "episodes to learn the tree, for every algorithm",
           options.FigureOptions, "fig2:run"),
    Result("fig3", "growth of learning time with the size of the chain",
           options.Fig3Options, "fig3:run"),
    Result("propositions", "the theory's predictions beside measurements",
           options.Options, "propositions:run"),
    Result("table", "the hyperparameters of tables 2 and 3, beside our presets",
           options.TableOptions, "tables:show"),
    Result("gridsearch", "the paper's hyperparameter search on the tree or the chain",
           options.GridSearchOptions, "tables:gridsearch"),
    Result("table1", "the Atari table, from published scores or from your own runs",
           options.AtariTableOptions, "table1:run"),
    Result("fig4", "SU beside other agents on each Atari game, from the same scores",
           options.AtariTableOptions, "fig4:run"),
    Result("atari", "training and evaluation on Atari by the paper's protocol, for both",
           options.AtariOptions, "atari:run"),
)  # fmt: skip
REGISTRY: dict[str, Result] = {result.name: result for result in RESULTS}
