"""Training: loops, their runners, and the choice of the runner for an environment."""

from surveyor.envs.base import Environment
from surveyor.envs.families import Source
from surveyor.envs.functional import Functional
from surveyor.training.episode_runner import EpisodeRunner
from surveyor.training.functional import FunctionalRunner
from surveyor.training.host import HostRunner
from surveyor.training.runner import Runner, Task


def runner(task: Task, source: Source) -> Runner:
    """Return the runner that trains a task on an environment, by the environment's interface."""
    if isinstance(source, Environment):
        return EpisodeRunner(task, source)
    if isinstance(source, Functional):
        return FunctionalRunner(task, source)
    return HostRunner(task, source)
