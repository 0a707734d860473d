"""Runs on a real Ray cluster of two nodes on this machine, one of which is removed."""

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import surveyor as sv
from surveyor.cli import main
from surveyor.launch import cluster
from surveyor.launch.engine import Engine
from surveyor.launch.progress import Overview
from surveyor.launch.work import RunOptions
from tests.launch.common import metrics, processes, wait_for

SPEC = """
seeds = 4
envs = ["Chain-8"]
episodes = 20000
keep_going = true
[[agents]]
agent = "su-plus"
set = { ensemble = 4, batch_size = 16, replay = "uniform", gradient_steps = 2 }
"""
"""Runs of about twenty seconds of gradient steps, whose results must be bit-identical."""


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Start two nodes; check that no process and no file in the home folder remains."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    pipe, script = subprocess.PIPE, Path(__file__).with_name("nodes.py")
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as together:
        together.address = next(
            line for line in together.stdout if re.fullmatch(r"\S+:\d+\n", line)
        )
        yield together
        together.stdin.close()
        assert together.wait(60) == 0
    assert list(home.iterdir()) == []
    assert not named("raylet"), "a Ray process is left"


def named(word):
    return [number for number, _, command in processes() if word in command.split(" ")[0]]


@pytest.mark.slow
def test_runs_survive_killed_workers_drivers_and_nodes(tmp_path, nodes, capfd):
    path, out = tmp_path / "it.toml", tmp_path / "out"
    path.write_text(SPEC)
    address = ["--engine", "ray", "--address", nodes.address]
    command = [sys.executable, "-m", "surveyor.cli", "sweep", path, "--out", out, *address]
    driver = subprocess.Popen([str(word) for word in command])
    wait_for(lambda: any(metrics(out).values()))
    for worker in named("ray::_train"):
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: list(out.glob("*/result.json")))
    driver.kill()
    driver.wait()
    done = {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")}
    assert 1 <= len(done) < 4
    again = subprocess.Popen([str(word) for word in command])
    wait_for(lambda: len(list(out.glob("*/metrics.jsonl"))) > len(done))
    nodes.stdin.write("remove\n")
    nodes.stdin.flush()
    assert again.wait(200) == 0
    assert all(path.stat().st_mtime_ns == when for path, when in done.items())
    here = tmp_path / "here"
    assert main(["sweep", str(path), "--out", str(here)]) == 0
    assert metrics(out) == metrics(here)
    results = [
        [json.loads((place / name / "result.json").read_text()) for name in sorted(metrics(here))]
        for place in (out, here)
    ]
    for one, other in zip(*results, strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_an_address_without_answer_is_refused(tmp_path, capsys):
    (tmp_path / "it.toml").write_text(SPEC)
    words = ["--engine", "ray", "--address", "127.0.0.1:1", "--out", str(tmp_path / "out")]
    assert main(["sweep", str(tmp_path / "it.toml"), *words]) == 2
    assert "There is no Ray cluster at '127.0.0.1:1'" in capsys.readouterr().err


def test_another_service_at_the_address_is_refused(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 8.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(sv.SurveyorError, match=f"no Ray cluster at '{address}': the service"):
            next(cluster._connected(importlib.import_module("ray"), address).gen)


def test_missing_ray_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(sv.SurveyorError, match=r"needs Ray: pip install \"surveyor\[ray\]\""):
        cluster.train_all([], str(tmp_path), Overview([]), RunOptions(), Engine(engine="ray"), [])
