"""Deep exploration for reinforcement learning: Successor Uncertainties, its competitors, and SU+.

import surveyor as sv
run = sv.train("su-plus", "Tree-100", seed=0)
run.solved_at, run.q_posterior([0, 2, 4])
"""

import importlib
import importlib.metadata
import pkgutil
from typing import TYPE_CHECKING, Any

from surveyor import _imports, _programs
from surveyor import _settings as _settings  # before anything imports JAX
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor import agents, envs, report
    from surveyor.agents.base import Agent
    from surveyor.agents.bdqn import BDQN
    from surveyor.agents.bonus import BonusDQN
    from surveyor.agents.bootdqn import BootDQN
    from surveyor.agents.dqn import DQN
    from surveyor.agents.hyperagent import HyperAgent
    from surveyor.agents.ideal_su import IdealSU
    from surveyor.agents.psrl import PSRL
    from surveyor.agents.su import SU
    from surveyor.agents.su_plus import SUPlus
    from surveyor.agents.ube import UBE
    from surveyor.agents.uniform import Uniform
    from surveyor.inference.posterior import Posterior
    from surveyor.runs.api import load, resume, train
    from surveyor.runs.callbacks import Callback, Evaluate, StopWhen
    from surveyor.runs.evaluation import Evaluation, evaluate
    from surveyor.runs.loggers import TensorBoard, WandB
    from surveyor.runs.recorder import Beliefs
    from surveyor.runs.run import Run
    from surveyor.sweeps.results import results
    from surveyor.types import Batch, EnvSpec, QPosterior, Schedule, Transition, Update

_imports.after("jax", _programs.use)
_imports.after("gymnasium", lambda: importlib.import_module("surveyor.envs.gymnasium") and None)

__all__ = ["BDQN", "DQN", "PSRL", "SU", "UBE", "Agent", "BonusDQN", "BootDQN", "HyperAgent"]
__all__ += ["IdealSU", "SUPlus", "Uniform"]
__all__ += ["Batch", "EnvSpec", "Posterior", "QPosterior", "Schedule", "Transition", "Update"]
__all__ += ["Evaluation", "Run", "SurveyorError", "evaluate", "load", "results", "resume", "train"]
__all__ += ["Beliefs", "Callback", "Evaluate", "StopWhen", "TensorBoard", "WandB"]
__all__ += ["agents", "envs", "report"]

_MODULES = {
    "agents.base": ("Agent",),
    "inference.posterior": ("Posterior",),
    "runs.api": ("load", "resume", "train"),
    "runs.callbacks": ("Callback", "Evaluate", "StopWhen"),
    "runs.loggers": ("TensorBoard", "WandB"),
    "runs.recorder": ("Beliefs",),
    "runs.evaluation": ("Evaluation", "evaluate"),
    "runs.run": ("Run",),
    "sweeps.results": ("results",),
    "types": ("Batch", "EnvSpec", "QPosterior", "Schedule", "Transition", "Update"),
}
"""Public names by module, beside the agents; they are imported when a name is first used, because
the command line's help and lists need no JAX."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("surveyor")
    if name in ("agents", "envs", "report"):
        return importlib.import_module(f"surveyor.{name}")
    found = [f"surveyor.{module}:{name}" for module, names in _MODULES.items() if name in names]
    entries = importlib.import_module("surveyor.agents").ENTRIES
    found += [entry.target for entry in entries if entry.target.endswith(f":{name}")]
    if found:
        return pkgutil.resolve_name(found[0])
    raise AttributeError(f"module 'surveyor' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
