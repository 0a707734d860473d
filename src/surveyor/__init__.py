"""Deep exploration for reinforcement learning: Successor Uncertainties and its competitors.

import surveyor as sv
run = sv.train("su", "Tree-100", seed=0)
run.solved_at, run.q_posterior([0, 2, 4])
"""

import os

# The QR and triangular solves of a d × d posterior are too small to be split over threads, and
# OpenBLAS's idle threads spin: two runs side by side are ten times slower with them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# XLA dispatches the operations of a loop's body one by one, some 50 ns each, unless a pass touches
# fewer bytes than this (1 kB where nothing is said): then the loop is one function. An episode of a
# tabular agent is such a loop, and seven times faster so.
if "xla_backend_extra_options" not in os.environ.get("XLA_FLAGS", ""):
    _flag = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=8192"
    os.environ["XLA_FLAGS"] = f"{_flag} {os.environ.get('XLA_FLAGS', '')}".strip()

from surveyor import agents, envs
from surveyor.agents import Agent
from surveyor.agents.bdqn import BDQN
from surveyor.agents.bootdqn import BootDQN
from surveyor.agents.dqn import DQN
from surveyor.agents.ideal import IdealSU
from surveyor.agents.psrl import PSRL
from surveyor.agents.su import SU
from surveyor.agents.ube import UBE
from surveyor.agents.uniform import Uniform
from surveyor.envs import gymnasium as _gymnasium
from surveyor.errors import SurveyorError
from surveyor.posterior import Posterior
from surveyor.training.api import load, resume, train
from surveyor.training.evaluate import Evaluation, evaluate
from surveyor.training.run import Run
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
