"""The registry of results, and `surveyor paper`, which reads it."""

import dataclasses
import inspect
import subprocess
import sys
from typing import get_type_hints

import pytest

from surveyor.cli import main
from surveyor.cli import paper as command
from surveyor.paper import results
from surveyor.paper.results import RESULTS, Result


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.name)
def test_every_result_has_a_function_that_takes_its_options(result):
    function = result.load()
    (argument,) = inspect.signature(function).parameters
    assert get_type_hints(function)[argument] is result.options
    assert dataclasses.is_dataclass(result.options)


def test_usage_is_read_from_the_registry(capsys):
    assert main(["paper", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(result.name in text and result.help in text for result in RESULTS)
    assert max(map(len, text.splitlines())) <= 100
    assert main(["paper"]) == 2


def test_a_new_result_is_one_line(monkeypatch, capsys):
    options = dataclasses.make_dataclass("Own", [("size", int, 3)], frozen=True)
    new = Result("mine", "own result", options, "mine:run")
    monkeypatch.setitem(results.REGISTRY, "mine", new)
    seen = []
    monkeypatch.setattr(Result, "load", lambda self: seen.append)
    assert command.main(["mine", "--size", "7"]) == 0
    assert seen == [options(7)]


def test_a_stopped_result_says_how_to_continue(monkeypatch, capsys):
    from surveyor.errors import StoppedError

    def stop(options):
        raise StoppedError

    monkeypatch.setattr(Result, "load", lambda self: stop)
    assert main(["paper", "fig2", "--quick"]) == 130
    assert "Rerun the same command to continue." in capsys.readouterr().err


def test_names_and_help_need_no_jax():
    code = """
import sys
from surveyor.cli import main
assert main(["paper", "--help"]) == 0
assert main(["paper", "fig22"]) == 2
for name in ("fig2", "gridsearch", "atari"):
    try:
        main(["paper", name, "--help"])
    except SystemExit:
        pass
assert "jax" not in sys.modules, "JAX was imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "did you mean 'fig2'?" in done.stderr
