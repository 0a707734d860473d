"""What a report is made from, and what it says is missing."""

import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import threading
import zlib

import gymnasium
import numpy as np
import pytest

import surveyor as sv
from surveyor import report
from surveyor.cli import main
from surveyor.report import collect, page


def unpacked(found):
    import base64

    kind = {"f4": "<f4", "i4": "<i4", "i1": "i1"}[found["type"]]
    return np.frombuffer(base64.b64decode(found["data"]), kind).reshape(found["shape"])


@pytest.fixture
def copy(tree, tmp_path):
    return shutil.copytree(tree.folder.path, tmp_path / "copy")


def test_numbers_come_back_as_they_were():
    for array in (np.array([[1.5, -2.0]]), np.arange(4), np.array([-3, 3], np.int8)):
        found = unpacked(page.packed(array))
        np.testing.assert_array_equal(found, array)


def test_a_picture_is_a_png_of_its_pixels():
    import base64

    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 3), np.uint8)
    png = base64.b64decode(page.picture(pixels).partition(",")[2])
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    data = png[png.index(b"IDAT") + 4 : png.index(b"IEND") - 8]
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(3, 16)
    np.testing.assert_array_equal(rows[:, 1:].reshape(3, 5, 3), pixels)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("metrics.jsonl", "no metrics.jsonl"),
        ("result.json", "result.json is damaged"),
        ("beliefs/0000000030.npz", "at 30 cannot be read"),
        ("config.json", "Without its configuration the beliefs"),
        ("failure.json", "failure.json is damaged"),
    ],
)
def test_of_a_damaged_run_what_is_there_is_shown_and_what_is_missing_is_said(copy, name, sentence):
    if name == "metrics.jsonl":
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(b"{")
    (run,) = collect.collect(copy)["runs"]
    assert sentence in " ".join([*run["missing"], run["reason"] or ""])
    if name == "beliefs/0000000030.npz":
        assert [look["at"] for look in run["beliefs"]["looks"]] == [0, 10, 20, 40, 60]
    page.as_json({"run": run})


@pytest.mark.parametrize("name", ["config.json", "result.json", "failure.json"])
@pytest.mark.parametrize("content", [None, "[" * 100_000, "[1, 2]", '{"env": null, "seed": 0}'])
def test_whatever_a_file_is_the_other_runs_are_shown(tree, copy, tmp_path, name, content):
    """A folder in its place, or what is no configuration, no result and no reason."""
    shutil.copytree(tree.folder.path, tmp_path / "whole")
    (copy / name).unlink(missing_ok=True)
    (copy / name).mkdir() if content is None else (copy / name).write_text(content)
    runs = {run["name"]: run for run in collect.collect(tmp_path)["runs"]}
    assert runs["whole"]["missing"] == []
    bad = runs["copy"]
    assert name in " ".join([*bad["missing"], bad["reason"] or ""]) or content == (
        '{"env": null, "seed": 0}'  # which is a result, if an odd one
    )
    page.as_json(bad)


def test_a_folder_that_lacks_its_configuration_is_among_the_runs(copy, tmp_path):
    (copy / "config.json").unlink()
    (run,) = collect.collect(tmp_path)["runs"]
    assert (run["name"], run["state"]) == ("copy", "failed")
    assert run["reason"] == "It has no config.json."
    assert run["metrics"]["episode"][-1] == 60


@pytest.mark.parametrize("line", ['{"episode": NaN}', f'{{"episode": 1{"0" * 400}}}', "[]", "{}"])
def test_odd_metrics_break_nothing(copy, tmp_path, line):
    (copy / "metrics.jsonl").write_text(line + "\n")
    (copy / "beliefs" / "1x.npz").write_bytes(b"")
    page.as_json(collect.collect(copy))
    page.as_json(collect.collect(tmp_path))


def test_if_no_look_can_be_read_the_page_has_none(copy):
    for path in (copy / "beliefs").iterdir():
        path.write_bytes(b"x")
    (run,) = collect.collect(copy)["runs"]
    assert "beliefs" not in run
    assert len(run["missing"]) == 6


def test_long_metrics_are_means_and_end_where_they_end(copy):
    lines = [json.dumps({"episode": 10 * i, "test_return": float(i % 2)}) for i in range(1, 1201)]
    (copy / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    (run,) = collect.collect(copy)["runs"]
    assert len(run["metrics"]["episode"]) == collect.POINTS
    assert run["metrics"]["episode"][-1] == 12000
    assert run["metrics"]["test_return"] == pytest.approx([0.6, 0.4] * 120)


def test_links_lead_from_the_page_to_the_run(tree, tmp_path):
    path = tree.folder.path
    run = collect.collect(path.parent, path.parent / "report.html")["runs"][0]
    assert run["link"] == path.name
    run = collect.collect(path, tmp_path / "a" / "report.html")["runs"][0]
    assert (tmp_path / "a" / run["link"]).resolve() == path.resolve()


def test_runs_with_other_settings_are_curves_of_their_own(tree, copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    config["hyperparameters"]["learning_rate"] = 0.25
    (copy / "config.json").write_text(json.dumps(config))
    shutil.copytree(tree.folder.path, tmp_path / "other")
    found = collect.collect(tmp_path)
    known = {f"learning_rate = {rate}" for rate in (0.25, tree.agent.learning_rate)}
    assert {run["settings"] for run in found["runs"]} == known
    assert len(found["curves"][0]["series"]) == 2
    assert found["runs"][0]["config"] == config


def test_a_torn_last_line_of_the_metrics_is_said(copy):
    with (copy / "metrics.jsonl").open("ab") as file:
        file.write(b'{"episode": 7')
    (run,) = collect.collect(copy)["runs"]
    assert run["metrics"]["episode"][-1] == 60
    assert "damaged" in run["missing"][0]


def test_what_is_around_damage_is_shown(copy):
    lines = (copy / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(b"".join([*lines[:2], b"{x\n", *lines[2:]]))
    np.savez(copy / "beliefs" / "0000000020.npz", other=1)
    (run,) = collect.collect(copy)["runs"]
    assert len(run["metrics"]["episode"]) == len(lines)
    assert run["missing"] == [
        f"Of {len(lines) + 1} lines of metrics.jsonl 1 are damaged and left out.",
        "The beliefs at 20 cannot be read.",
    ]
    assert [look["at"] for look in run["beliefs"]["looks"]] == [0, 10, 30, 40, 60]


def test_one_run_that_cannot_be_read_does_not_hide_the_others(tree, copy, tmp_path):
    shutil.copytree(tree.folder.path, tmp_path / "other")
    (copy / "metrics.jsonl").unlink()
    (copy / "metrics.jsonl").mkdir()
    first, second = collect.collect(tmp_path)["runs"]
    assert "metrics.jsonl cannot be read" in first["missing"][0]
    assert second["missing"] == []


def test_a_run_of_another_version_that_has_ended_is_no_failure(copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    config["hyperparameters"]["gizmo"] = 1
    (copy / "config.json").write_text(json.dumps(config))
    (run,) = collect.collect(tmp_path)["runs"]
    assert run["state"] == "done"
    assert "other hyperparameters" in run["reason"]
    assert run["missing"] == ["Without its configuration the beliefs cannot be shown."]


def test_a_run_of_surveyor_0_1_is_listed_with_its_result_but_not_loaded(copy, tmp_path, capsys):
    config = json.loads((copy / "config.json").read_text())
    config["versions"]["surveyor"] = "0.1.0"
    config["agent"] = "su"
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(sv.SurveyorError) as error:
        sv.load(copy)
    assert str(error.value) == (
        f"'{config['env']} su seed {config['seed']}' was trained by surveyor 0.1.0, whose agent "
        "'su' is gone, or today's 'su' if it had a preset of the paper's text or "
        "released code; this version can show its results but not load or continue it: train it "
        "again."
    )
    (run,) = collect.collect(tmp_path)["runs"]
    result = json.loads((copy / "result.json").read_text())
    assert (run["state"], run["solved_at"]) == ("done", result["solved_at"])
    assert run["reason"] == str(error.value)
    assert main(["status", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "was trained by surveyor 0.1.0" in said
    assert "1 run: 1 done." in said
    config["agent"] = "dqn"
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(sv.SurveyorError, match=r"trained by surveyor 0\.1\.0; this version"):
        sv.load(copy)


def test_an_episode_is_played_in_an_environment_that_is_given(tmp_path):
    class Light(gymnasium.Env):
        """A picture that is dark or light."""

        observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 1), np.uint8)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.steps = 0
            return np.zeros((8, 8, 1), np.uint8), {}

        def step(self, action):
            self.steps += 1
            shown = np.full((8, 8, 1), 60 * self.steps, np.uint8)
            return shown, float(action), self.steps == 4, False, {}

    agent = dataclasses.replace(
        sv.SUPlus.preset("minatar"), hidden=8, ensemble=4, warmup=16, envs=1
    )
    run = sv.train(agent, Light, steps=100, out=tmp_path, beliefs=True)
    path = run.folder.path
    (found,) = collect.collect(path)["runs"]
    assert "surveyor.report.write(path, env=...)" in found["missing"][0]
    assert report.write(path, env=Light) == path / "report.html"
    (found,) = collect.collect(path, env=Light)["runs"]
    assert (found["missing"], found["episode"]["length"]) == ([], 4)
    (path / "checkpoint" / "state.npz").unlink()
    (found,) = collect.collect(path, env=Light)["runs"]
    assert "There is no checkpoint" in found["missing"][0]


def test_nothing_but_a_file_is_replaced(copy, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert main(["report", str(copy), "--out", str(tmp_path / "pipe")]) == 2
    assert "is not a regular file" in capsys.readouterr().err


def test_a_url_has_beliefs_too_and_a_single_run_is_said_to_be_one(copy, tmp_path):
    (run,) = collect.collect(f"file://{tmp_path}")["runs"]
    assert [look["at"] for look in run["beliefs"]["looks"]] == [0, 10, 20, 30, 40, 60]
    with pytest.raises(sv.SurveyorError, match="is a single run"):
        collect.collect(f"file://{copy}")


def test_data_cannot_end_its_script_and_what_is_no_number_is_null():
    text = page.as_json({"</script><b>": [float("nan"), float("inf"), 1.5, "&<"]})
    assert "<" not in text
    assert json.loads(text) == {"</script><b>": [None, None, 1.5, "&<"]}


def test_many_runs_have_curves_scaling_and_settings(many):
    found = collect.collect(many)
    assert len(found["runs"]) == 200
    assert [panel["env"] for panel in found["curves"]] == ["Tree-6", "Tree-7", "Tree-8"]
    (scaling,) = found["scaling"]
    assert scaling["series"][0]["sizes"] == [6, 7, 8]
    solved = [10.0 + seed for seed in range(0, 200, 3)]
    assert scaling["series"][0]["median"][0] == np.median(solved)
    states = [run["state"] for run in found["runs"]]
    assert states.count("failed") == 1
    assert states.count("done") == 199


def test_the_command_writes_one_file_and_refuses_what_is_no_folder(tree, tmp_path, capsys):
    out = tmp_path / "deep" / "it.html"
    assert main(["report", str(tree.folder.path), "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    text = out.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "src=" not in text.partition("<script>")[0]
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    assert main(["report", str(tree.folder.path), "--out", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "deep")]) == 2
    assert "There are no runs" in capsys.readouterr().err
    assert main(["watch", str(tree.folder.path), "--port", "99999"]) == 2
    assert "port must be" in capsys.readouterr().err


def test_watching_ends_cleanly_at_ctrl_c(tree, capsys):
    stop = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    assert main(["watch", str(tree.folder.path)]) == 0
    stop.join()
    said = capsys.readouterr()
    address = re.search(r"http://(127.0.0.1):(\d+)/", said.out)
    assert address is not None
    assert said.err == ""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address[1], int(address[2])), timeout=5)
