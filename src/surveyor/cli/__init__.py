"""The command line: `surveyor train Tree-100`. Nothing heavy is imported before it is needed."""

import importlib
import os
import sys
from collections.abc import Sequence

import surveyor
from surveyor.errors import SurveyorError, unknown

COMMANDS = {
    "train": ("train ENV", "train an agent, for example: surveyor train Tree-100"),
    "resume": ("resume RUN", "continue a run that was stopped or killed"),
    "evaluate": ("evaluate RUN", "play greedy episodes with what a run has learnt"),
    "list": ("list WHAT", "list agents, envs or presets"),
    "sweep": ("sweep SPEC", "train many runs from a specification, here or on a Ray cluster"),
    "status": ("status DIR", "show the state of the runs in a folder"),
    "export": ("export DIR", "write the runs in a folder as a table: CSV or JSON lines"),
    "plot": ("plot DIR", "draw learning curves, profiles and scores of the runs in a folder"),
    "report": ("report DIR", "write a page for the browser: how runs learnt, what agents believed"),
    "watch": ("watch DIR", "show the same page while training goes on"),
    "paper": ("paper RESULT", "reproduce a figure, a table or the propositions of the paper"),
}
"""Usage and summary of each command; `surveyor.cli.<command>` has its function `main`."""


def usage() -> str:
    """Return the text of `surveyor --help`."""
    lines = [f"  surveyor {words:14} {summary}" for words, summary in COMMANDS.values()]
    head = "surveyor: deep exploration for reinforcement learning"
    foot = "surveyor COMMAND --help describes its options; surveyor --version prints the version."
    return "\n".join([head, "", *lines, "", foot])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code (2 for bad input, 130 when stopped)."""
    argv = [*(sys.argv[1:] if argv is None else argv)]  # `list` is a command here
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # where my_package:MyEnv-v0 may be, as with python -m
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    try:
        if argv[0] in ("-V", "--version"):
            print(f"surveyor {surveyor.__version__}")
            return 0
        if argv[0] not in COMMANDS:
            raise unknown("command", argv[0], COMMANDS)
        return importlib.import_module(f"surveyor.cli.{argv[0]}").main(argv[1:])
    except SurveyorError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        said = f"'{error.filename}': " if error.filename else ""
        print(f"A file could not be read or written: {said}{error.strerror}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
