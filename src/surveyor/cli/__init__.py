"""The command line: `surveyor train Tree-100`. Nothing heavy is imported before it is needed."""

import atexit
import contextlib
import importlib
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import surveyor
from surveyor.errors import SurveyorError, require, unknown

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
    "bench": ("bench NAME", "compare agents on DeepSea, MiniGrid or classic problems"),
    "paper": ("paper RESULT", "reproduce a figure, a table or the propositions of the paper"),
}
"""Usage and summary of each command; `surveyor.cli.<command>` has its function `main`."""


def usage() -> str:
    """Return the text of `surveyor --help`."""
    lines = [f"  surveyor {words:14} {summary}" for words, summary in COMMANDS.values()]
    head = "surveyor: deep exploration for reinforcement learning"
    foot = """\
surveyor COMMAND --help describes its options; surveyor --version prints the version.
--import MODULE, with any command, first imports a module or a .py file with agents or environment
families of your own; it can be given more than once."""
    return "\n".join([head, "", *lines, "", foot])


def take_imports(argv: list[str]) -> tuple[list[str], list[str]]:
    """Return the modules that `--import` names, and the other words of a command line."""
    modules, words, queue = [], [], iter(argv)
    for word in queue:
        name, equals, value = word.partition("=")
        if name != "--import":
            words.append(word)
            continue
        value = value if equals else next(queue, "")
        require(value.strip("-") == value != "", "--import needs a module or a .py file.")
        modules.append(value)
    return modules, words


def _format_warning(message: Warning | str, category: type[Warning], *rest: Any) -> str:
    """Return a warning as the sentence that it is."""
    return f"{message}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code (2 for bad input, 130 when stopped)."""
    warnings.formatwarning = _format_warning
    argv = [*(sys.argv[1:] if argv is None else argv)]  # `list` is a command here
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # where my_package:MyEnv-v0 may be, as with python -m
    try:
        modules, argv = take_imports(argv)
        if not argv or argv[0] in ("-h", "--help"):
            print(usage())
            return 0 if argv else 2
        if modules:
            importlib.import_module("surveyor.agents").import_modules(modules)
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


def run() -> NoReturn:
    """Run a command as a process, and leave once everything is written.

    Python would take JAX apart piece by piece, for a third of a second.
    """
    code = main()
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(code)
