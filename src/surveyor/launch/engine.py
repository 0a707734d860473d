"""Where runs are trained, as the command line says it."""

import dataclasses
import math
from typing import Literal

from surveyor.errors import SurveyorError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine:
    """Where runs are trained."""

    engine: Literal["local", "ray"] = "local"
    """local: one run per core of this machine. ray: tasks of a Ray cluster (pip install
    "surveyor[ray]")."""
    address: str | None = None
    """The Ray cluster's, such as 10.0.0.1:6379 or auto. By default one is started on this
    machine."""
    cpus: float = 1.0
    """With ray: processors for each run."""
    gpus: float = 0.0
    """With ray: accelerators for each run; a fraction lets runs share one."""

    def __post_init__(self):
        if self.address is not None and self.engine != "ray":
            raise SurveyorError("An address is that of a Ray cluster: add --engine ray.")
        if self.engine == "local" and (self.cpus, self.gpus) != (1.0, 0.0):
            raise SurveyorError("cpus and gpus are what a Ray task asks for: add --engine ray.")
        for name, least in (("cpus", 0.01), ("gpus", 0.0)):
            if not least <= getattr(self, name) < math.inf:
                raise SurveyorError(f"{name} must be at least {least:g}.")
