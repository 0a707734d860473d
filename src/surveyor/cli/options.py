"""Command-line options from dataclasses, by tyro; what is wrong with them in one sentence."""

import contextlib
import io
import re
from typing import Any

import tyro

from surveyor.errors import SurveyorError


def parse(kind: Any, argv: list[str], prog: str, default: Any = None) -> Any:
    """An instance of a dataclass, from words of the command line; what they do not say is as in
    `default`.

    Tyro explains a mistake in a frame of several lines; a `SurveyorError` says the same in one.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            options = {} if default is None else {"default": default}
            return tyro.cli(kind, args=argv, prog=prog, use_underscores=False, **options)
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise SurveyorError(_sentence(said.getvalue())) from None


def _sentence(frame: str) -> str:
    """What a frame says, without the frame."""
    text = re.sub(r"[│╭╮╰╯─|+]|-{3,}|\s+", " ", frame)
    text = re.sub(r" +", " ", text).strip()
    for pattern, sentence in SENTENCES.items():
        if found := re.search(pattern, text):
            return found.expand(sentence)
    return text if text.endswith(".") else f"{text}."


SENTENCES = {
    r"Unrecognized options: (\S+?),? .*Perhaps you meant: (--\S+)": (
        r"There is no option '\1'; did you mean '\2'?"
    ),
    r"Unrecognized options: (\S+?),? ": r"There is no option '\1'.",
    r"Error parsing (\S+): .*?\[(.*?)\].* helptext: \S+ (?:\{None\} )?(\S+)": (
        r"\1 takes \3, not \2."
    ),
    r"Error parsing (\S+): .*?('[^']*') Argument helptext: \S+ (\S+)": r"\1 takes \3, not \2.",
    r"Missing value for argument '(.*?)'": r"\1 needs a value.",
    r"invalid choice ('.*?') for argument '(.*?)'.*Expected one of \((.*?)\)": (
        r"\2 must be one of \3, not \1."
    ),
    r"Missing from (.*?): \S+ (.*?) \(required\)": r"\1 needs to know: \2",
}
"""What tyro says (version 1.0), and what the user is told."""
