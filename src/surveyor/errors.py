"""Errors that the user can fix, each explained in one sentence."""

import difflib
import importlib
from collections.abc import Iterable
from typing import Any


class SurveyorError(Exception):
    """Invalid input or an invalid file. The command line prints it and exits with code 2."""


class HeldError(SurveyorError):
    """Another process is training the run."""


def unknown(kind: str, name: str, known: Iterable[str]) -> SurveyorError:
    """Return the error for an unknown `name` of this `kind`, with the nearest `known` name."""
    known = list(known)
    lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = (
        f"did you mean '{lower[near[0]]}'?" if near else f"there is: {', '.join(known) or 'none'}."
    )
    return SurveyorError(f"There is no {kind} '{name}'; {hint}")


def missing(package: str, extra: str, purpose: str) -> SurveyorError:
    """Return the error for a `package`, required for `purpose`, of an `extra` not installed."""
    return SurveyorError(f'{purpose} needs {package}: pip install "surveyor[{extra}]".')


def imported(module: str, package: str, extra: str, purpose: str) -> Any:
    """Return a module; raise the error of `missing` if its package is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing(package, extra, purpose) from None
