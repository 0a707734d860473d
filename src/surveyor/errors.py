"""Errors that are the caller's to mend: one clear sentence each."""

import difflib
from collections.abc import Iterable


class SurveyorError(Exception):
    """Bad input, or a file that is not what it should be. The command line exits with code 2."""


class HeldError(SurveyorError):
    """A run that another process is training."""


def unknown(kind: str, name: str, known: Iterable[str]) -> SurveyorError:
    """The error for a name that does not exist, with the nearest one that does."""
    known = list(known)
    lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = (
        f"did you mean '{lower[near[0]]}'?" if near else f"there is: {', '.join(known) or 'none'}."
    )
    return SurveyorError(f"There is no {kind} '{name}'; {hint}")


def missing(package: str, extra: str, purpose: str) -> SurveyorError:
    """The error for an extra that is not installed."""
    return SurveyorError(f'{purpose} needs {package}: pip install "surveyor[{extra}]".')
