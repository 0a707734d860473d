"""Results of a folder as a table of records."""

import csv
import fcntl
import io
import json
import math
import os
import re
import sys
import time
from pathlib import Path

import pytest

import surveyor as sv
from surveyor.cli import main
from surveyor.runs import storage
from surveyor.sweeps import results, status
from tests.sweeps.common import interval, step, write_run

PAGE = Path(__file__).parents[2] / "docs" / "results-as-data.md"
SOLVED = {"seed": 0, "solved_at": 20, "first_success": 11, "episodes": 30, "gradient_steps": 300}


@pytest.fixture
def runs(tmp_path):
    """A folder with one run of every kind."""
    out = tmp_path / "runs"
    lines = [interval(10, 0.0, 1.0, test=0.0), interval(20, 1.0, 1.0, test=1.0)]
    write_run(out, "a-solved", result={**SOLVED, "seconds": 0.5}, metrics=lines)
    write_run(
        out, "b-stopped", env="CartPole-v1", agent="dqn", seed=3, episodes=None,
        stop_when_solved=None, steps=1000, hyperparameters={"double": True},
        metrics=[step(100 * k, None if k == 4 else float(k), q_loss=0.1) for k in range(1, 15)],
    )  # fmt: skip
    tests = [{"number": k, "of": 3, "at": k, "mean_return": r} for k, r in enumerate((1.0, 5, 2))]
    write_run(
        out, "c-mine", agent="mine", env="my_package:Env-v0", evaluations=tests,
        hyperparameters={"net": {"width": 8, "sizes": [1, 2]}}, wrappers={"stack": 4},
    )  # fmt: skip
    write_run(out, "d-damaged").joinpath("config.json").write_text('{"env": ')
    write_run(out, "e-older", result={"episodes": 5}, versions={"surveyor": "0.1.0"}, agent="su")
    (out / "sweep-1.json").write_text(json.dumps({"runs": {"f-waiting": "SU, larger"}}))
    return out


def by_name(found):
    return {record["name"]: record for record in found}


def test_each_run_is_one_record_of_settings_and_results(runs):
    found = by_name(sv.results(runs))
    solved = found["a-solved"]
    assert solved.items() >= {
        "label": "SU+", "env": "Tree-4", "agent": "su-plus", "seed": 0, "state": "done",
        "budget": 100, "unit": "episodes", "progress": 30, "return": 0.75, "test_return": 1.0,
        "agent.curiosity": 0.5, "agent.replay": "uniform", "stop_when_solved": True, "seconds": 0.5,
        "versions.jax": "0.10.0", "commit": "c0", "path": f"{runs}/a-solved", "steps": None,
        **SOLVED,
    }.items()  # fmt: skip
    stopped = found["b-stopped"]
    assert stopped.items() >= {
        "state": "stopped", "budget": 1000, "unit": "steps", "progress": 1400, "steps": 1400,
        "episodes": 140, "agent.double": True, "solved_at": None, "reason": None,
    }.items()  # fmt: skip
    assert stopped["return"] == (sum(range(5, 15))) / 10  # of the newest ten records
    assert "agent.curiosity" not in stopped


def test_runs_that_cannot_be_loaded_are_there_too(runs):
    found = by_name(sv.results(str(runs)))
    mine = found["c-mine"]
    assert (mine["state"], mine["label"], mine["env"]) == ("stopped", "mine", "my_package:Env-v0")
    assert (mine["agent.net.width"], mine["agent.net.sizes"]) == (8, [1, 2])
    assert mine["wrappers.stack"] == 4
    assert [mine[f"{k}_evaluation"] for k in ("best", "last")] == [5, 2]
    assert mine["evaluations"] == 3
    assert found["d-damaged"]["state"] == "failed"
    assert "config.json" in found["d-damaged"]["reason"]
    assert found["e-older"].items() >= {"state": "done", "versions.surveyor": "0.1.0"}.items()
    waiting = found["f-waiting"]
    assert (waiting["state"], waiting["label"], waiting["env"]) == ("waiting", "SU, larger", None)


def test_states_are_those_of_status(runs):
    write_run(runs, "g-failed").joinpath("failure.json").write_text('{"reason": "too hot"}')
    running = write_run(runs, "h-running", agent="mine")
    held = os.open(running / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    write_run(runs, "i-odd", seed="x").joinpath("result.json").mkdir()
    found = sv.results(runs)
    shown = {each.name: each.state for each in status.read_all(storage.at(runs))}
    os.close(held)
    assert {record["name"]: record["state"] for record in found} == shown
    assert by_name(found)["g-failed"]["reason"] == "too hot"
    assert shown["h-running"] == "running"
    assert set(shown.values()) == set(status.STATES)


def test_damaged_files_hide_no_run(runs):
    path = runs / "a-solved"
    for content in ("5\n", "null\n", '{"returns": ["x"]}\n', '{"episode": "x"}\n', "\xff\n", ""):
        (path / "metrics.jsonl").write_text(content)
        (path / "result.json").write_text('{"state": 5, "path": 6, "name": 7, "return": [1]}')
        found = by_name(sv.results(runs))["a-solved"]
        assert (found["state"], found["path"], found["return"]) == ("done", str(path), [1])
        assert len(sv.results(runs, metrics=True)) >= 14
    deep = "{" + '"a": {' * 400 + "}" * 401
    (path / "config.json").write_text(deep)
    assert by_name(sv.results(runs))["a-solved"]["state"] in ("done", "failed")
    (path / "config.json").unlink()
    (path / "config.json").mkdir()
    assert by_name(sv.results(runs))["a-solved"]["name"] == "a-solved"


def test_a_long_file_of_metrics_is_read_from_its_end(tmp_path):
    lines = [step(k, float(k)) for k in range(1, 5001)]
    path = write_run(tmp_path, "long", steps=9000, metrics=lines) / "metrics.jsonl"
    with open(path, "a") as file:
        file.write('{"step": 5001, "ret')  # a kill
    (found,) = sv.results(tmp_path)
    assert (found["progress"], found["return"]) == (5000, 4995.5)


def test_metrics_are_one_record_per_line(runs):
    found = sv.results(runs, metrics=True)
    assert found[0] == {
        "name": "a-solved", "label": "SU+", "env": "Tree-4", "agent": "su-plus", "seed": 0,
        "episode": 10, "return": 0.5, "length": 4.0, "test_return": 0.0,
    }  # fmt: skip
    assert len(found) == 2 + 14
    assert found[-1]["step"] == 1400
    first = ["name", "label", "env", "agent", "seed", "episode", "step"]
    assert found.columns[:7] == first
    assert found[2].keys() >= {"step", "q_loss"}


def test_columns_do_not_depend_on_the_order_of_runs(runs):
    found = sv.results(runs)
    assert found.columns[: len(results.COLUMNS)] == list(results.COLUMNS)
    other = results.Results(reversed(found))
    assert other.columns == found.columns
    assert "columns" in repr(found)
    assert len(repr(found)) < 80


def test_a_data_frame_where_pandas_is_installed(runs, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = sv.results(runs).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (6, len(sv.results(runs).columns))
    assert frame.set_index("name").loc["a-solved", "agent.curiosity"] == 0.5
    long = sv.results(runs, metrics=True).to_pandas()
    assert long.groupby("name")["return"].max().to_dict() == {"a-solved": 1.0, "b-stopped": 14.0}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(sv.SurveyorError, match=r'pip install "surveyor\[pandas\]"'):
        sv.results(runs).to_pandas()


def test_csv_and_json_hold_any_value(tmp_path):
    write_run(
        tmp_path, "odd", env='a,"b"\nc', metrics=[step(1, math.nan, q_loss=math.inf)], steps=5,
        hyperparameters={"list": [1, 2], "text": "\ud800é", "none": None, "yes": True},
    )  # fmt: skip
    text = results.to_csv(sv.results(tmp_path))
    text.encode("utf-8")
    assert text.count("\r\n") == 2
    header, row = csv.reader(io.StringIO(text, newline=""))
    read = dict(zip(header, row, strict=True))
    assert read["env"] == 'a,"b"\nc'
    assert [read[f"agent.{key}"] for key in ("list", "none", "yes")] == ["[1, 2]", "", "True"]
    (line,) = json.loads(results.to_json(sv.results(tmp_path, metrics=True)), parse_constant=int)
    assert (line["return"], line["q_loss"]) == (None, None)


def test_a_url_is_read_like_a_folder(runs):
    pytest.importorskip("fsspec")
    found = sv.results(f"file://{runs}")
    assert [r["state"] for r in found] == [r["state"] for r in sv.results(runs)]
    assert by_name(found)["a-solved"]["path"] == f"file://{runs}/a-solved"


def test_a_thousand_runs_are_read_in_seconds(tmp_path):
    metrics = [interval(10 * k, *[0.0] * 10, test=0.0) for k in range(200)]
    for number in range(1000):
        write_run(tmp_path, f"run-{number}", seed=number, metrics=metrics if number < 100 else ())
    began = time.monotonic()
    assert len(sv.results(tmp_path)) == 1000
    assert time.monotonic() - began < 10  # about 0.4 s on one free core


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(sv.SurveyorError, match="There are no runs"):
        sv.results(tmp_path)
    with pytest.raises(sv.SurveyorError, match="There is no folder"):
        sv.results(tmp_path / "none", metrics=True)


def test_status_prints_the_records_as_json(runs, capsys):
    assert main(["status", str(runs), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == sv.results(runs)
    assert main(["status", str(runs)]) == 0
    shown = capsys.readouterr().out
    assert "c-mine" in shown
    assert "6 runs: 2 done, 2 stopped, 1 waiting, 1 failed." in shown


def test_the_code_of_the_page_runs(runs, monkeypatch, capsys):
    pytest.importorskip("pandas")
    write_run(
        runs, "chain", env="Chain-20", hyperparameters={"learning_rate": 0.5}, result=SOLVED,
        metrics=[interval(10, 0.25, 0.75)],
    )  # fmt: skip
    monkeypatch.chdir(runs.parent)
    (code,) = re.findall("```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    found = {}
    exec(code, found)
    assert found["solved"] == [20]
    assert re.search(r"Chain-20 +su-plus +0.5 +20.0", capsys.readouterr().out)


def test_the_page_names_every_column():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    named = re.findall("`(.*?)`", " ".join(rows))
    assert {name for name in named if "." not in name} == set(results.COLUMNS)


def test_the_commands_of_the_page_run(runs, monkeypatch, capsys):
    monkeypatch.chdir(runs.parent)
    commands = re.findall(r"^ +surveyor ((?:status|export) .*?) +#", PAGE.read_text("utf-8"), re.M)
    assert len(commands) == 5
    for command in commands:
        assert main(command.split()) == 0, command
    assert capsys.readouterr().out
