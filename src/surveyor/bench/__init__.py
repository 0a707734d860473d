"""Benchmarks by name: `surveyor bench NAME`. A new one is one file and one line in `BENCHES`."""

import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple

from surveyor.bench import options


class Bench(NamedTuple):
    """One benchmark, as the command line knows it."""

    name: str
    help: str
    options: type[Any]
    """Dataclass of its command-line options."""

    def load(self) -> Callable[[Any], None]:
        """Return the function that runs it."""
        return pkgutil.resolve_name(f"surveyor.bench.{self.name}:run")


BENCHES = (
    Bench("deepsea", "episodes to learn DeepSea from pictures, by size", options.DeepSeaOptions),
    Bench("bsuite", "bsuite's exploration: deep_sea, swing-up, its scores", options.BsuiteOptions),
    Bench("minigrid", "ten of MiniGrid's worlds, fully observed", options.MiniGridOptions),
    Bench("classics", "small sparse or stochastic problems", options.ClassicsOptions),
    Bench("ablation", "SU+ without one of its parts", options.AblationOptions),
)
REGISTRY: dict[str, Bench] = {bench.name: bench for bench in BENCHES}
