"""Refusing hyperparameters, in one sentence each."""

import dataclasses
import math
from typing import Any, get_args

from surveyor.errors import SurveyorError


def that(holds: bool, sentence: str) -> None:
    """Refuse with this sentence unless it holds."""
    if not holds:
        raise SurveyorError(sentence)


def positive(agent: Any, *names: str) -> None:
    """Numbers above zero, within what float32 can square."""
    for name in names:
        value = getattr(agent, name)
        that(0 < value < math.inf, f"{name} must be a positive number, not {value:g}.")
        that(1e-30 < value < 1e30, f"{name} must be between 1e-30 and 1e30, not {value:g}.")


def share(agent: Any, *names: str) -> None:
    """Numbers above 0 and at most 1."""
    for name in names:
        value = getattr(agent, name)
        that(0 < value <= 1, f"{name} must be above 0 and at most 1, not {value:g}.")


def at_least(agent: Any, least: int, *names: str) -> None:
    """Finite numbers that are not below `least`."""
    for name in names:
        value = getattr(agent, name)
        that(least <= value < math.inf, f"{name} must be at least {least}, not {value:g}.")


def choices(agent: Any) -> None:
    """Every `Literal` field has one of its values."""
    for field in dataclasses.fields(agent):
        known, value = get_args(field.type), getattr(agent, field.name)
        if known:
            names = ", ".join(known)
            that(value in known, f"{field.name} must be one of {names}, not '{value}'.")
