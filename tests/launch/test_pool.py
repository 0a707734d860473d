"""Sweeps on this machine whose processes die, fail or compete for the same runs."""

import fcntl
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surveyor.cli import main
from surveyor.launch import pool
from surveyor.runs import storage
from surveyor.runs.folder import RunFolder
from surveyor.sweeps import spec
from tests.launch.common import metrics, processes, wait_for

ROOT = Path(__file__).parents[2]
SPEC = """
seeds = 2
envs = ["Chain-8"]
episodes = 40000
keep_going = true
[[agents]]
agent = "uniform"
"""


@pytest.fixture
def write(tmp_path):
    def written(text):
        (tmp_path / "it.toml").write_text(text)
        return str(tmp_path / "it.toml")

    return written


def start(*words):
    command = [sys.executable, "-m", "surveyor.cli", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def children(pid):
    return [n for n, parent, command in processes() if parent == pid and "spawn_main" in command]


def test_runs_survive_killed_workers_and_two_drivers_share_them(tmp_path, write, capsys):
    path, out = write(SPEC), tmp_path / "out"
    process, other = (start("sweep", path, "--out", out) for _ in range(2))
    wait_for(lambda: any(metrics(out).values()))
    for child, how in zip(children(process.pid), (signal.SIGKILL, signal.SIGTERM), strict=False):
        os.kill(child, how)
    assert len(list(out.glob("*/result.json"))) < 2
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert "2 of 2 runs are done" in said
    said, _ = other.communicate(timeout=240)
    assert other.returncode == 0, said
    assert "2 of 2 runs are done" in said
    alone = tmp_path / "alone"
    words = "train Chain-8 --agent uniform --episodes 40000 --keep-going --no-beliefs --seed 1"
    assert main([*words.split(), "--out", str(alone)]) == 0
    (name, content), *_ = metrics(alone).items()
    assert metrics(out)[name] == content  # no duplicate lines: identical to an undisturbed run
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")}
    assert len(before) == 2
    assert main(["sweep", path, "--out", str(out)]) == 0
    assert {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")} == before
    capsys.readouterr()
    assert main(["status", str(out)]) == 0
    assert "2 runs: 2 done." in capsys.readouterr().out
    assert main(["plot", str(out)]) == 0
    assert re.search(r"\| Uniform \| .* \(.* to .*\) \|", capsys.readouterr().out)
    assert {path.name for path in (out / "plots").iterdir()} == {
        "curves.png", "profiles.png", "summary.json", "summary.md"
    }  # fmt: skip


def test_a_failed_run_is_reported_and_the_others_continue(tmp_path, write, capsys):
    text = """
    seeds = 1
    [[agents]]
    agent = "uniform"
    envs = ["tests.launch.broken:Broken-v0"]
    steps = 100
    [[agents]]
    agent = "uniform"
    envs = ["Tree-4"]
    episodes = 50
    """
    process = start("sweep", write(text), "--out", tmp_path / "out")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "1 of 2 runs are done" in said
    assert "the motor is hot" in said
    assert main(["status", str(tmp_path / "out")]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"Broken.* failed .*the motor is hot", listed)
    assert "2 runs: 1 done, 1 failed." in listed


class Recorded:
    """Callback that records the ends of runs."""

    def __init__(self):
        self.ended = []

    def update(self, number, record, now):
        pass

    def end(self, number, result):
        self.ended.append((number, result))


def test_a_run_whose_process_keeps_dying_fails_with_a_reason(tmp_path, write):
    callback, configs = Recorded(), [run.config for run in spec.read(Path(write(SPEC)))]
    runs = pool._Pool(configs, storage.at(tmp_path), callback, lambda *_: None)
    for _ in range(2):
        runs._retry(1, "Its process died.")
        assert 1 in runs.delayed
        assert not callback.ended
    runs._retry(1, "Its process died.")
    reason = "Its process died. Gave up after 3 attempts."
    assert callback.ended == [(1, {"seed": 1, "finished": False, "failure": reason})]
    assert RunFolder(tmp_path / configs[1].name).failure() == reason


def test_ctrl_c_does_not_start_waiting_runs(tmp_path, write):
    """Starting each of forty runs only to save it would take minutes."""
    configs = [run.config for run in spec.read(Path(write(SPEC)))]
    runs = pool._Pool(configs, storage.at(tmp_path), Recorded(), lambda *_: None)
    assert runs._busy()
    runs._interrupt(signal.SIGINT, None)
    assert not runs._busy()
    idle = pool._Worker(multiprocessing.Process(), multiprocessing.Pipe()[0], set())
    runs.workers = [idle]
    runs._assign()
    assert idle.number is None
    with pytest.raises(KeyboardInterrupt):
        runs._interrupt(signal.SIGINT, None)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_a_sweep_immediately(tmp_path, write):
    out = tmp_path / "out"
    process = start("sweep", write(SPEC.replace("40000", "50000000")), "--out", out)
    wait_for(lambda: any(metrics(out).values()))
    workers = children(process.pid)
    for child in workers:
        os.kill(child, signal.SIGSTOP)  # unable to save, so the first Ctrl-C would wait forever
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert not {n for n, _, _ in processes()} & set(workers)


@pytest.mark.slow
def test_a_run_held_by_another_driver_is_left_alone(tmp_path, write, capsys):
    path, out = write(SPEC.replace("40000", "100")), tmp_path / "out"
    first, second = (run.config.name for run in spec.read(Path(path)))
    (out / first).mkdir(parents=True)
    held = os.open(out / first / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    process = start("sweep", path, "--out", out)
    wait_for((out / second / "result.json").exists)
    time.sleep(pool.RETRY_SECONDS)
    assert [path.name for path in (out / first).iterdir()] == [".lock"]
    assert main(["status", str(out)]) == 0
    assert "1 done, 1 waiting" in capsys.readouterr().out
    os.close(held)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert (out / first / "result.json").exists()


def test_runs_survive_a_temporarily_missing_folder(tmp_path, write):
    path, out, away = write(SPEC), tmp_path / "out", tmp_path / "away"
    process = start("sweep", path, "--out", out)
    wait_for(lambda: len(metrics(out)) == 2 and all(metrics(out).values()))
    out.rename(away)
    assert len(list(away.glob("*/result.json"))) < 2
    time.sleep(2)
    assert not out.exists()
    away.rename(out)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert len(list(out.glob("*/result.json"))) == 2


def test_a_sweep_records_snapshots_if_asked(tmp_path, write):
    path, out = write(SPEC.replace("40000", "20").replace("seeds = 2", "seeds = 1")), tmp_path
    assert main(["sweep", path, "--out", str(out / "without")]) == 0
    assert main(["sweep", path, "--out", str(out / "with"), "--beliefs"]) == 0
    (run,), (other,) = out.glob("with/Chain*"), out.glob("without/Chain*")
    assert RunFolder(run).snapshot_times() == [0, 10, 20]
    assert RunFolder(other).snapshot_times() == []
    assert metrics(out / "with") == metrics(out / "without")


def test_a_dry_run_lists_runs_without_training(tmp_path, write, capsys):
    assert main(["sweep", write(SPEC), "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert re.search(r"Chain-8-uniform-s1.* about \d+:\d\d:\d\d, \d+ MB of memory", lines[1])
    assert not (tmp_path / "out").exists()


def test_status_and_plot_refuse_an_empty_folder(tmp_path, capsys):
    assert main(["status", str(tmp_path / "none")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    assert main(["plot", str(tmp_path)]) == 2
    assert "There are no runs" in capsys.readouterr().err
    (tmp_path / "sweep-1.json").write_text(json.dumps({"runs": {"Tree-4-su-s0-x": "su"}}))
    assert main(["plot", str(tmp_path)]) == 2
    assert "None of the runs has a return" in capsys.readouterr().err


def test_a_damaged_run_does_not_hide_the_others(tmp_path, write, capsys):
    path = write(SPEC.replace("40000", "50").replace("Chain-8", "Tree-4"))
    out = tmp_path / "out"
    assert main(["sweep", path, "--out", str(out)]) == 0
    first = sorted(out.glob("Tree-*"))[0]
    for content in ("5", "null", '{"returns": [1.0]}', '{"return": 1.0}', '{"return": "x"}'):
        (first / "metrics.jsonl").write_text(content + "\n")
        assert main(["status", str(out)]) == 0
    (first / "config.json").write_text("[]")
    (out / "sweep-1.json").write_text('{"runs": [[1, 2]]}')
    capsys.readouterr()
    assert main(["status", str(out)]) == 0
    said = capsys.readouterr().out
    assert "2 runs: 2 done" in said  # it has a result, and its damage is reported
    assert "config.json" in said
    assert main(["plot", str(out)]) == 0
    assert f"{first.name} is left out: " in capsys.readouterr().err
    assert main(["sweep", path, "--out", str(out)]) == 0  # repairs it
    capsys.readouterr()
    assert main(["status", str(out)]) == 0
    assert "config.json" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--address", "1.2.3.4:5"], "add --engine ray"),
        (["--engine", "ray", "--cpus", "-1"], "cpus must be at least"),
        (["--engine", "ray", "--gpus", "nan"], "gpus must be at least"),
        (["--engine", "slurm"], "engine must be one of"),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(write, capsys, words, sentence):
    assert main(["sweep", write(SPEC), *words]) == 2
    assert sentence in capsys.readouterr().err
