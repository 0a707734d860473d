"""`surveyor export`."""

import csv
import io
import json

import pytest

import surveyor as sv
from surveyor.cli import main
from tests.sweeps.common import interval, step, write_run


@pytest.fixture
def runs(tmp_path):
    write_run(tmp_path / "runs", "a", metrics=[interval(10, 0.0, 1.0)], result={"episodes": 10})
    write_run(
        tmp_path / "runs", "b", agent="dqn", episodes=None, steps=50, hyperparameters={"double": 1},
        metrics=[step(10, 1.0), step(20, 2.0)],
    )  # fmt: skip
    return tmp_path / "runs"


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_has_the_union_of_columns(runs, capsys):
    assert main(["export", str(runs), "--csv"]) == 0
    one, two = rows(capsys.readouterr().out)
    assert list(one) == list(two) == sv.results(runs).columns
    assert (one["name"], one["agent.curiosity"], one["agent.double"]) == ("a", "0.5", "")
    assert (two["state"], two["agent.curiosity"], two["agent.double"]) == ("stopped", "", "1")


def test_metrics_go_to_a_file(runs, tmp_path, capsys):
    out = tmp_path / "new" / "metrics.csv"
    assert main(["export", str(runs), "--csv", "--metrics", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert str(out) in said.err
    content = out.read_bytes().decode("utf-8")
    assert content.count("\r\n") == content.count("\n") == 4
    assert [row["return"] for row in rows(content)] == ["0.5", "1.0", "2.0"]
    assert [row["step"] for row in rows(content)] == ["", "10", "20"]


def test_json_lines(runs, capsys):
    assert main(["export", str(runs), "--json", "--metrics"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == sv.results(runs, metrics=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "needs one format: --csv or --json."),
        (["--csv", "--json"], "needs one format: --csv or --json."),
        (["--csv", "--out", "{runs}"], "could not be read or written"),
        (["--cvs"], "did you mean '--csv'?"),
    ],
)
def test_wrong_words_are_answered_in_one_sentence(runs, capsys, words, sentence):
    assert main(["export", str(runs), *(word.format(runs=runs) for word in words)]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_folder_without_runs_is_refused(tmp_path, capsys):
    assert main(["export", str(tmp_path), "--csv"]) == 2
    assert "There are no runs in" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "none"), "--csv"]) == 2
    assert "There is no folder" in capsys.readouterr().err
    assert main(["export", "--csv"]) == 2
    assert capsys.readouterr().err == "surveyor export needs to know: The folder, or its URL.\n"
