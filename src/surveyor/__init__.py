"""Deep exploration for reinforcement learning: Successor Uncertainties and its competitors.

import surveyor as sv
run = sv.train("su", "Tree-100", seed=0)
run.solved_at, run.q_posterior([0, 2, 4])
"""

from surveyor import _settings as _settings
from surveyor import agents, envs
from surveyor.agents import Agent
from surveyor.agents.bdqn import BDQN
from surveyor.agents.bootdqn import BootDQN
from surveyor.agents.dqn import DQN
from surveyor.agents.ideal_su import IdealSU
from surveyor.agents.psrl import PSRL
from surveyor.agents.su import SU
from surveyor.agents.ube import UBE
from surveyor.agents.uniform import Uniform
from surveyor.envs import gymnasium as _gymnasium
from surveyor.errors import SurveyorError
from surveyor.inference.posterior import Posterior
from surveyor.runs.api import load, resume, train
from surveyor.runs.evaluation import Evaluation, evaluate
from surveyor.runs.run import Run
from surveyor.types import EnvSpec, QPosterior, Transition

_gymnasium.register()

__all__ = [
    "BDQN",
    "DQN",
    "PSRL",
    "SU",
    "UBE",
    "Agent",
    "BootDQN",
    "EnvSpec",
    "Evaluation",
    "IdealSU",
    "Posterior",
    "QPosterior",
    "Run",
    "SurveyorError",
    "Transition",
    "Uniform",
    "agents",
    "envs",
    "evaluate",
    "load",
    "resume",
    "train",
]
