"""Hyperparameters as options: which of them have an effect where, and checks of their values."""

import ast
import dataclasses
import functools
import inspect
import math
import textwrap
from typing import Any, Literal, NamedTuple, get_args

from surveyor.errors import SurveyorError

Scope = Literal["tables", "networks", "episodes", "steps"]
"""Where an option has an effect: on numbered states or on all other observations; in runs that
learn after every episode or every few steps."""

REASONS: dict[Scope, str] = {
    "tables": "it is for environments with numbered states",
    "networks": "it is for networks, and this environment has numbered states",
    "episodes": "it is for environments that are learnt by episodes",
    "steps": "it is for environments that are learnt by steps",
}


class Setting(NamedTuple):
    """The two facts about an environment that decide which options have an effect."""

    tables: bool
    """True if observations are the numbers of states."""
    episodes: bool
    """True if agents learn after every episode, not every few steps."""

    def covers(self, scope: Scope | None) -> bool:
        """Return whether an option of this scope has an effect here."""
        here = ("tables" if self.tables else "networks", "episodes" if self.episodes else "steps")
        return scope is None or scope in here


def option(default: Any, *, on: Scope | None = None, **choices: Scope) -> Any:
    """Declare a hyperparameter.

    **Arguments:**

    - `default`: its default value.
    - `on`: the only scope in which it has an effect; None for everywhere.
    - `choices`: values of it that have an effect in one scope only.
    """
    return dataclasses.field(default=default, metadata={"on": on, "choices": choices})


def unread(agent: Any, setting: Setting) -> dict[str, Scope]:
    """Return the options of an agent or agent class that have no effect, with their scope.

    An option of which only one value has an effect is among them.
    """
    found: dict[str, Scope] = {}
    for field in dataclasses.fields(agent):
        on, choices = field.metadata.get("on"), field.metadata.get("choices", {})
        silent = [scope for scope in choices.values() if not setting.covers(scope)]
        if on and not setting.covers(on):
            found[field.name] = on
        elif silent and len(get_args(field.type)) - len(silent) < 2:
            found[field.name] = silent[0]
    return found


def refuse_unread(agent: Any, setting: Setting, env: str) -> None:
    """Raise `SurveyorError` if an option was changed that has no effect on this environment."""
    silent = unread(agent, setting)
    for field in dataclasses.fields(agent):
        value = getattr(agent, field.name)
        if field.name in silent and value != field.default:
            reason = REASONS[silent[field.name]]
            raise SurveyorError(f"{field.name} has no effect on {env}: {reason}.")
        scope = field.metadata.get("choices", {}).get(value) if isinstance(value, str) else None
        if scope is not None and not setting.covers(scope):
            raise SurveyorError(f"{field.name} = {value} has no effect on {env}: {REASONS[scope]}.")


@functools.cache
def descriptions(kind: type) -> dict[str, str]:
    """Return the docstring of every field of a class, inherited ones included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for here, after in zip(body.body, body.body[1:], strict=False):
            if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
                text = after.value if isinstance(after, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[here.target.id] = inspect.cleandoc(text.value)
    return found


def require(holds: bool, sentence: str) -> None:
    """Raise `SurveyorError` with this sentence unless it holds."""
    if not holds:
        raise SurveyorError(sentence)


def require_positive(agent: Any, *names: str) -> None:
    """Require numbers above zero, within what float32 can square."""
    for name in names:
        value = getattr(agent, name)
        require(0 < value < math.inf, f"{name} must be a positive number, not {value:g}.")
        require(1e-30 < value < 1e30, f"{name} must be between 1e-30 and 1e30, not {value:g}.")


def require_share(agent: Any, *names: str) -> None:
    """Require numbers above 0 and at most 1."""
    for name in names:
        value = getattr(agent, name)
        require(0 < value <= 1, f"{name} must be above 0 and at most 1, not {value:g}.")


def require_at_least(agent: Any, least: int, *names: str) -> None:
    """Require finite numbers that are not below `least`."""
    for name in names:
        value = getattr(agent, name)
        require(least <= value < math.inf, f"{name} must be at least {least}, not {value:g}.")


def require_choices(agent: Any) -> None:
    """Require one of its values of every `Literal` field."""
    for field in dataclasses.fields(agent):
        known, value = get_args(field.type), getattr(agent, field.name)
        if known:
            names = ", ".join(known)
            require(value in known, f"{field.name} must be one of {names}, not '{value}'.")
