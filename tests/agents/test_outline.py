"""Outlines have the options of the real classes, and need no JAX."""

import dataclasses
import subprocess
import sys

import pytest

from surveyor import agents
from surveyor.agents.options import descriptions, literals


@pytest.mark.parametrize("entry", agents.ENTRIES, ids=lambda entry: entry.name)
def test_an_outline_has_the_options_of_its_class(entry):
    outline, real = entry.outline(), entry.load()
    assert outline is not real
    ours, theirs = dataclasses.fields(outline), dataclasses.fields(real)
    assert [field.name for field in ours] == [field.name for field in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.default == other.default
        assert literals(mine.type) == literals(other.type)
        words = [[rule.words for rule in agents.options._rules(x.type)] for x in (mine, other)]
        assert words[0] == words[1]
        for key in ("on", "choices"):
            assert mine.metadata.get(key) == other.metadata.get(key)
        needs = [field.metadata.get("needs") for field in (mine, other)]
        assert [rule and rule.words for rule in needs] == [needs[1] and needs[1].words] * 2
    assert descriptions(outline) == descriptions(real)


def test_values_are_checked_without_the_class():
    with pytest.raises(agents.SurveyorError, match="spread must be a positive number, not -1"):
        agents.make_outline("su-plus", {"spread": -1.0})
    with pytest.raises(agents.SurveyorError, match="other hyperparameters"):
        agents.make_outline("su-plus", {"colour": 1})


LIGHT = """
import contextlib, io, sys
from surveyor.cli import main
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    try:
        main(sys.argv[1:])
    except SystemExit:
        pass
assert said.getvalue(), "it says something"
assert "jax" not in sys.modules, "JAX was imported"
"""


@pytest.mark.parametrize(
    "words",
    [
        "train Tree-100 --help",
        "train Tree-100 --bogus 3",
        "train Tree-100 --episodes 0",
        "train Tree-100 --agent.spread -1",
        "train DeepSea-10 --agent dqn --agent.loss no",
        "train CartPole-v1 --frames 3",
        "train Tre-100",
        "sweep --help",
        "sweep no.toml",
        "plot no",
        "status no",
        "resume no",
        "evaluate tests",
        "report no",
    ],
)
def test_help_lists_and_wrong_arguments_need_no_jax(words):
    command = [sys.executable, "-c", LIGHT, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
