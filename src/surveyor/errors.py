"""Errors that the user can fix, each explained in one sentence."""

import difflib
import importlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


class SurveyorError(Exception):
    """Invalid input or an invalid file. The command line prints it and exits with code 2."""


class HeldError(SurveyorError):
    """Another process is training the run."""


class StoppedError(Exception):
    """The user stopped a study; its runs are on disk."""


def require(holds: bool, sentence: str) -> None:
    """Raise `SurveyorError` with this sentence unless it holds."""
    if not holds:
        raise SurveyorError(sentence)


def require_folder(place: str | Path) -> None:
    """Raise `SurveyorError` unless there is such a folder; a URL is taken as it is."""
    found = "://" in str(place) or Path(place).is_dir()
    require(found, f"There is no folder '{place}'.")


def require_run(path: str | Path) -> None:
    """Raise `SurveyorError` unless a path is the folder of a run."""
    require(Path(path).exists(), f"There is no run folder '{path}'.")
    there = (Path(path) / "config.json").is_file()
    require(there, f"'{path}' is not a run folder: it has no config.json.")


def unknown(
    kind: str, name: str, known: Collection[str], aliases: Mapping[str, str] = {}
) -> SurveyorError:
    """Return the error for an unknown `name` of this `kind`, with the nearest `known` name.

    Several names that begin alike are all listed. `aliases` are other words for known names.
    """
    lower = {word.lower(): meant for word, meant in {**aliases, **{k: k for k in known}}.items()}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    longer = [each for each in known if name and each.lower().startswith(name.lower())]
    hint = f"there is: {', '.join(longer if len(longer) > 1 else known) or 'none'}."
    if near and len(longer) < 2:
        hint = f"did you mean '{lower[near[0]]}'?"
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
