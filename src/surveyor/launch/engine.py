"""Command-line options that choose where runs are trained."""

import dataclasses
import math
from typing import Literal

from surveyor.errors import require


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine:
    """Engine that trains the runs, and its resources."""

    engine: Literal["local", "ray"] = "local"
    """local: one run per core of this machine. ray: tasks of a Ray cluster (pip install
    "surveyor[ray]")."""
    address: str | None = None
    """Address of a Ray cluster, such as 10.0.0.1:6379 or auto; by default one is started here."""
    cpus: float = 1.0
    """Processors per run, with ray."""
    gpus: float = 0.0
    """Accelerators per run, with ray; a fraction shares one."""

    def __post_init__(self):
        ray, default = self.engine == "ray", (self.cpus, self.gpus) == (1.0, 0.0)
        require(ray or self.address is None, "--address is for a Ray cluster: add --engine ray.")
        require(ray or default, "--cpus and --gpus are for a Ray cluster: add --engine ray.")
        require(0.01 <= self.cpus < math.inf, "cpus must be at least 0.01.")
        require(0.0 <= self.gpus < math.inf, "gpus must be at least 0.")
