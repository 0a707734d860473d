"""Command-line options from dataclasses, by tyro, with one-sentence errors; outcomes of runs."""

import contextlib
import functools
import io
import json
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import tyro
from tyro.conf import Positional as Positional

from surveyor.errors import SurveyorError

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]
"""An option that is true if it is given."""


def command(run: Callable[..., int | None]) -> Callable[[list[str]], int]:
    """Turn `main` of a command's module into a function of the words of the command line.

    Its parameters are the command's options and its docstring is the text of `--help`. It returns
    the exit code; None is 0.
    """
    run.__doc__ = (run.__doc__ or "").replace("\n" + 12 * " ", " ")  # tyro keeps line breaks

    @functools.wraps(run)
    def bind(*args: Any, **options: Any) -> Callable[[], int | None]:
        return functools.partial(run, *args, **options)

    prog = f"surveyor {run.__module__.rpartition('.')[2]}"
    return lambda argv: parse(bind, argv, prog)() or 0


def parse(kind: Any, argv: list[str], prog: str) -> Any:
    """Return what a dataclass or function makes of words of the command line.

    Tyro explains a mistake in a frame of several lines; the `SurveyorError` says it in one. `prog`
    is the command, for `--help`.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(kind, args=argv, prog=prog, use_underscores=False)
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise SurveyorError(_sentence(said.getvalue())) from None


def _sentence(frame: str) -> str:
    """Return the text of a frame, without the frame."""
    text = re.sub(r"([│╭╮╰╯─|+]|-{3,}|\s)+", " ", frame).strip()
    for pattern, sentence in SENTENCES.items():
        if found := re.search(pattern, text):
            return found.expand(sentence)
    return text if text.endswith(".") else f"{text}."


SENTENCES = {
    r"Unrecognized options: ([^-\s]\S*?),? ": r"'\1' is a word too many.",
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
"""Messages of tyro 1.0 as patterns, and the sentences for the user."""


def conclude(env: str, agent: str, results: list[dict[str, Any]], *, as_json: bool) -> int:
    """Print the outcome of runs; return 130 if one was stopped before its end, else 0."""
    from surveyor.launch.progress import summary
    from surveyor.sweeps.statistics import median_solved

    stopped = [result["path"] for result in results if not result.pop("finished")]
    times = [result.get("solved_at") for result in results]
    median = median_solved(times)
    if as_json:
        print(json.dumps({"env": env, "agent": agent, "runs": results, "median_solved_at": median}))
    else:
        for result in results:
            print(f"{env} {agent} seed {result['seed']}: {summary(result)}\n  {result['path']}")
        if len(results) > 1 and "steps" not in results[0]:
            solved = sum(time is not None for time in times)
            said = "" if median is None else f", median episode {median:g}"
            print(f"{solved} of {len(results)} solved{said}")
    for path in stopped:
        print(f"Stopped; everything is saved. Continue: surveyor resume {path}", file=sys.stderr)
    return 130 if stopped else 0
