"""Hyperparameters as options: which of them have an effect where, and checks of their values."""

import ast
import dataclasses
import functools
import inspect
import itertools
import math
import textwrap
from collections.abc import Callable, Collection, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from surveyor.errors import SurveyorError, require

Scope = Literal["tables", "networks", "episodes", "steps"]
"""Where an option has an effect: on numbered states or on all other observations; in runs that
learn after every episode or every few steps."""

REASONS: dict[Scope, str] = {
    "tables": "it is for environments with numbered states",
    "networks": "it is for networks, and this environment has numbered states",
    "episodes": "it is for environments that are learnt by episodes",
    "steps": "it is for environments that are learnt by steps",
}
Values = Mapping[str, Any]
NOTHING: Values = {}


class Rule(NamedTuple):
    """A condition on a number, as part of an option's type; or on an agent, for an option's use."""

    holds: Callable[[Any], bool]
    words: str


_AT_LEAST_0 = Rule(lambda x: 0 <= x < math.inf, "at least 0")
Positive = Annotated[
    float,
    Rule(lambda x: 0 < x < math.inf, "a positive number"),
    Rule(lambda x: 1e-30 < x < 1e30, "between 1e-30 and 1e30"),  # what float32 can square
]
Share = Annotated[float, Rule(lambda x: 0 < x <= 1, "above 0 and at most 1")]
Probability = Annotated[float, Rule(lambda x: 0 <= x <= 1, "from 0 to 1")]
NonNegative = Annotated[float, _AT_LEAST_0]
Count = Annotated[int, _AT_LEAST_0]
Size = Annotated[int, Rule(lambda x: 1 <= x < math.inf, "at least 1")]


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


def option(
    default: Any,
    *,
    on: Scope | None = None,
    needs: Rule | None = None,
    converter: Callable[[Any], Any] | None = None,
    **choices: Scope,
) -> Any:
    """Declare a hyperparameter; `converter` brings what is given into its form.

    It has an effect in the scope `on` only, or everywhere, and where the agent's other options meet
    the condition `needs`. `choices` are values of it that have an effect in one scope only.
    """
    metadata = {"on": on, "needs": needs, "choices": choices}
    metadata |= {} if converter is None else {"converter": converter}
    return dataclasses.field(default=default, metadata=metadata)


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
        elif silent and len(literals(field.type)) - len(silent) < 2:
            found[field.name] = silent[0]
    return found


def refuse_unread(
    agent: Any, setting: Setting, env: str, usual: Values = NOTHING, given: Collection[str] = ()
) -> None:
    """Raise `SurveyorError` if an option was chosen that has no effect on this environment.

    An option was chosen if it is `given` or differs from its default and from its `usual` value.
    """
    silent = unread(agent, setting)
    for field in dataclasses.fields(agent):
        name, value = field.name, getattr(agent, field.name)
        chosen = name in given or value not in (field.default, usual.get(name, field.default))
        needs, choices = field.metadata.get("needs"), field.metadata.get("choices", {})
        scope = choices.get(value) if isinstance(value, str) else None
        if chosen and name in silent:
            raise SurveyorError(f"{name} has no effect on {env}: {REASONS[silent[name]]}.")
        if chosen and needs is not None and not needs.holds(agent):
            raise SurveyorError(f"{name} has no effect here: it needs {needs.words}.")
        if scope is not None and not setting.covers(scope):
            raise SurveyorError(f"{name} = {value} has no effect on {env}: {REASONS[scope]}.")


@functools.cache
def descriptions(kind: type) -> dict[str, str]:
    """Return the docstring of every field of a class, inherited ones included."""
    found: dict[str, str] = {}
    for base in (base for base in reversed(kind.__mro__) if dataclasses.is_dataclass(base)):
        texts = vars(base).get("__texts__")  # of an outline
        if texts is None:
            parsed: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            texts = texts_in(parsed)
        found |= texts
    return found


def texts_in(node: ast.ClassDef) -> dict[str, str]:
    """Return the docstring of every field in the source of a class."""
    found = {}
    for pair in itertools.pairwise(node.body):
        match pair:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                found[name] = inspect.cleandoc(text)
    return found


def require_valid(agent: Any) -> None:
    """Require that options keep the rules of their types, and are among their `Literal` values."""
    for kind in type(agent).__mro__:  # a subclass may change a default, not the rules
        for name, hint in inspect.get_annotations(kind).items():
            for rule in _rules(hint):
                value = getattr(agent, name)
                if value is not None and not rule.holds(value):
                    raise SurveyorError(f"{name} must be {rule.words}, not {value:g}.")
    for field in dataclasses.fields(agent):
        known, value = literals(field.type), getattr(agent, field.name)
        if known and (isinstance(value, str) or get_origin(field.type) is Literal):
            names = ", ".join(known)
            require(value in known, f"{field.name} must be one of {names}, not '{value}'.")


def _rules(hint: Any) -> list[Rule]:
    """Return the rules in a type, also in a part of a union."""
    rules = [rule for rule in getattr(hint, "__metadata__", ()) if isinstance(rule, Rule)]
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    parts = get_args(inner) if get_origin(inner) in (Union, UnionType) else ()
    return rules + [rule for part in parts for rule in _rules(part)]


def literals(hint: Any) -> tuple[str, ...]:
    """Return the names that an option may have, if its type or a part of it is a `Literal`."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(name for part in get_args(hint) for name in literals(part))


def values(agent: Any) -> dict[str, Any]:
    """Return the value of every option of an agent."""
    return {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent)}
