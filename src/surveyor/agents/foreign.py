"""A stand-in for the agent of a run folder whose class is not known here."""

import functools
from collections.abc import Mapping
from typing import Any, NoReturn

from surveyor.agents import Entry
from surveyor.agents.base import Agent
from surveyor.errors import SurveyorError


class Foreign(Agent):
    """Has the name and hyperparameters of an agent, so that lists can show its runs; cannot act."""

    __entry__ = Entry("?", "?", "surveyor.agents.foreign:Foreign", "An agent that is not known.")

    def init(self, spec: Any, key: Any) -> NoReturn:
        raise SurveyorError(f"The agent {type(self).__name__} is not known here.")

    def sample(self, state: Any, key: Any) -> NoReturn:
        self.init(state, key)

    def greedy(self, state: Any) -> NoReturn:
        self.init(state, None)

    def q(self, state: Any, index: Any, obs: Any) -> NoReturn:
        self.init(state, None)

    def observe(self, state: Any, transitions: Any, mask: Any) -> NoReturn:
        self.init(state, None)

    def learn(self, state: Any, batch: Any, key: Any) -> NoReturn:
        self.init(state, key)


def stand_in(name: str, path: str, hyperparameters: Mapping[str, Any]) -> Foreign:
    """Return a stand-in for the agent `name`, an instance of the class `path`."""
    valid = {key: value for key, value in hyperparameters.items() if key.isidentifier()}
    return _kind(name, path.rpartition(":")[2] or name, tuple(valid))(**valid)


@functools.cache
def _kind(name: str, title: str, fields: tuple[str, ...]) -> type[Foreign]:
    """Return a class with these fields, one for each agent: runs are compared by it."""
    entry = Entry(name, title, Foreign, "An agent that is not known here.")
    body = {"__annotations__": dict.fromkeys(fields, Any), "__module__": __name__}
    metaclass: Any = type(Foreign)
    return metaclass(title, (Foreign,), {**body, "__entry__": entry})
