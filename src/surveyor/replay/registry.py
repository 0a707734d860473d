"""Replay strategies by name. A new one is a class and one line here."""

import dataclasses
import re
from typing import Any

from surveyor.errors import SurveyorError, unknown
from surveyor.replay.strategies import Prioritised, RecentAndBest, Strategy, Uniform

STRATEGIES: dict[str, type[Strategy]] = {
    "uniform": Uniform,
    "prioritised": Prioritised,
    "recent-and-best": RecentAndBest,
}


def strategy(text: str) -> Strategy:
    """Return the strategy that an option names, such as `uniform` or `prioritised(0.6)`.

    Raise `SurveyorError` if there is none of this name or its numbers do not fit.
    """
    found = re.fullmatch(r"\s*([\w-]+)\s*(?:\(([^()]*)\))?\s*", text)
    if found is None:
        raise SurveyorError(f"A replay strategy is a name such as prioritised(0.6), not '{text}'.")
    name, numbers = found[1], found[2].split(",") if (found[2] or "").strip() else []
    if name not in STRATEGIES:
        raise unknown("replay strategy", name, STRATEGIES)
    kinds: list[Any] = [field.type for field in dataclasses.fields(STRATEGIES[name])]
    try:
        if len(numbers) > len(kinds):
            raise ValueError
        return STRATEGIES[name](*[kind(text) for kind, text in zip(kinds, numbers, strict=False)])
    except ValueError:
        raise SurveyorError(
            f"'{text}' has numbers that the strategy {name} does not take."
        ) from None


def fitting(text: str, scope: str) -> Strategy:
    """Return a strategy for runs by `scope`; raise `SurveyorError` if it is for others only."""
    found = strategy(text)
    if found.scope not in ("", scope):
        raise SurveyorError(
            f"The replay strategy {text} is for environments that are learnt by {found.scope}."
        )
    return found
