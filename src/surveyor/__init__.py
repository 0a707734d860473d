"""Deep exploration for reinforcement learning: Successor Uncertainties, its competitors, and SU+.

import surveyor as sv
run = sv.train("su-plus", "Tree-100", seed=0)
run.solved_at, run.q_posterior([0, 2, 4])
"""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from surveyor import _gymnasium
from surveyor import _settings as _settings  # before anything imports JAX
from surveyor.errors import SurveyorError

if TYPE_CHECKING:
    from surveyor import agents, envs, report
    from surveyor.agents.base import Agent
    from surveyor.agents.bdqn import BDQN
    from surveyor.agents.bootdqn import BootDQN
    from surveyor.agents.dqn import DQN
    from surveyor.agents.ideal_su import IdealSU
    from surveyor.agents.psrl import PSRL
    from surveyor.agents.su import SU
    from surveyor.agents.su_plus import SUPlus
    from surveyor.agents.ube import UBE
    from surveyor.agents.uniform import Uniform
    from surveyor.inference.posterior import Posterior
    from surveyor.runs.api import load, resume, train
    from surveyor.runs.evaluation import Evaluation, evaluate
    from surveyor.runs.run import Run
    from surveyor.types import Batch, EnvSpec, QPosterior, Schedule, Transition, Update

_gymnasium.register_when_imported()

_HOMES = {
    "Agent": "agents.base",
    "BDQN": "agents.bdqn",
    "BootDQN": "agents.bootdqn",
    "DQN": "agents.dqn",
    "IdealSU": "agents.ideal_su",
    "PSRL": "agents.psrl",
    "SU": "agents.su",
    "SUPlus": "agents.su_plus",
    "UBE": "agents.ube",
    "Uniform": "agents.uniform",
    "Posterior": "inference.posterior",
    "load": "runs.api",
    "resume": "runs.api",
    "train": "runs.api",
    "Evaluation": "runs.evaluation",
    "evaluate": "runs.evaluation",
    "Run": "runs.run",
    **dict.fromkeys(
        ("Batch", "EnvSpec", "QPosterior", "Schedule", "Transition", "Update"), "types"
    ),
}
"""Modules of the public names, imported when a name is first used: the command line's help and
lists need no JAX."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("surveyor")
    if name in ("agents", "envs", "report"):
        return importlib.import_module(f"surveyor.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"surveyor.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'surveyor' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


__all__ = [
    "BDQN",
    "DQN",
    "PSRL",
    "SU",
    "UBE",
    "Agent",
    "Batch",
    "BootDQN",
    "EnvSpec",
    "Evaluation",
    "IdealSU",
    "Posterior",
    "QPosterior",
    "Run",
    "SUPlus",
    "Schedule",
    "SurveyorError",
    "Transition",
    "Uniform",
    "Update",
    "agents",
    "envs",
    "evaluate",
    "load",
    "report",
    "resume",
    "train",
]
