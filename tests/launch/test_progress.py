"""The display of progress, and what it says in words."""

import pytest

from surveyor.launch import progress
from surveyor.runs import api

RECORD = {"test_return": 0.0, "lengths": [3, 2]}
NOW = {"episodes": 10, "first_success": None, "solved_at": None}


def configs(count):
    return [api.configure("uniform", "Tree-4", seed=seed, episodes=200) for seed in range(count)]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", -1.0)


def test_without_a_terminal_a_line_has_every_run_in_training_with_unit_and_state(capsys):
    several = configs(2)
    with progress.Overview(several, ended=3) as overview:
        overview.update(1, RECORD, NOW)
    state = "10 of 200 episodes, greedy 0, length 3"
    assert capsys.readouterr().err == f"runs: 3 of 5; {several[1].name}: {state}\n"


def test_a_single_run_has_no_line_for_all_runs(capsys):
    (one,) = configs(1)
    with progress.Overview([one]) as overview:
        overview.update(0, RECORD, NOW)
        overview.end(0, {"finished": True})
    assert capsys.readouterr().err == f"{one.name}: 10 of 200 episodes, greedy 0, length 3\n"


def test_of_many_runs_only_those_in_training_are_shown_and_failures_are_told(capsys):
    many = configs(progress.FEW + 1)
    with progress.Overview(many) as overview:
        overview.update(4, RECORD, NOW)
        overview.end(4, {"finished": False, "failure": "It broke."})
        overview.update(7, RECORD, NOW)
    lines = capsys.readouterr().err.splitlines()
    state = "10 of 200 episodes, greedy 0, length 3"
    assert lines[0] == f"runs: 0 of {len(many)}; {many[4].name}: {state}"
    assert lines[1] == f"{many[4].name} failed: It broke."
    assert lines[2] == f"runs: 0 of {len(many)}; {many[7].name}: {state}"


def test_times_and_outcomes_in_words():
    assert progress.clock(3_725.9) == "1:02:05"
    solved = {"episodes": 190, "seconds": 1.0, "first_success": 90, "solved_at": 100}
    assert progress.summary(solved) == (
        "solved at episode 100 (first success at 90, 1.0 s of training)"
    )
    lost = {**solved, "first_success": None, "solved_at": None}
    assert progress.summary(lost) == (
        "not solved in 190 episodes (the goal was never reached, 1.0 s of training)"
    )
