"""Runs of a benchmark: what is recorded of each, and that a stopped one continues."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from surveyor.bench import REGISTRY, deepsea, study
from surveyor.bench.options import DeepSeaOptions
from surveyor.cli import main
from surveyor.errors import SurveyorError


def evaluations(*means):
    return [{"at": 10 * i, "mean_return": mean} for i, mean in enumerate(means)]


def test_a_threshold_is_reached_by_the_first_of_three_in_a_row():
    records = evaluations(1.0, 0.2, 1.0, 0.9, 0.95, 1.0)
    assert study.reached(records, 0.9) == 20
    assert study.reached(records, 0.9, in_a_row=1) == 0
    assert study.reached(records[:4], 0.9) is None
    assert study.reached([], 0.9) is None


def test_a_curve_is_thinned_to_means_over_all_of_it():
    curve = [(float(i), float(i % 2)) for i in range(1_000)]
    thin = study.thin(curve)
    assert len(thin) == study.POINTS
    np.testing.assert_allclose([mean for _, mean in thin], 0.5)
    assert thin[-1][0] == 999
    assert study.thin([(3.0, 2.0)]) == [(3.0, 2.0)]
    assert study.thin([]) == []


def test_unknown_agents_and_damaged_results_are_refused(tmp_path):
    with pytest.raises(SurveyorError, match="did you mean 'su-plus'"):
        study.labelled(["su-pluss"], deepsea.LABELS)
    assert list(study.labelled(["dqn"], deepsea.LABELS)) == ["dqn"]
    assert study.labelled([], deepsea.LABELS) == deepsea.LABELS
    (tmp_path / "deepsea.jsonl").write_text('{"run": "a"}\n{"run": \n')
    with pytest.raises(SurveyorError, match="remove the line that is damaged"):
        study.read(tmp_path / "deepsea.jsonl")


TINY = DeepSeaOptions(agents=("su-plus", "dqn"), sizes=(3,), seeds=2, episodes=60)


def test_runs_are_recorded_and_never_repeated(tmp_path, capsys, monkeypatch):
    trials = deepsea.trials(TINY)
    entries = study.train(trials, tmp_path, "deepsea")
    assert [(e["label"], e["seed"]) for e in entries] == [
        ("SU+", 0), ("SU+", 1), ("DQN", 0), ("DQN", 1),
    ]  # fmt: skip
    for entry, trial in zip(entries, trials, strict=True):
        assert entry["run"] == trial.config.name
        assert entry["env"] == "DeepSea-3"
        assert entry["options"]["batch_size"] == 128
        times = [at for at, _ in entry["evaluations"]]
        assert times == list(range(60, entry["steps"] + 1, 60))
        sampled = [at for at, _ in entry["sampled"]]
        assert sampled == (times if entry["agent"] == "su-plus" else [])
        assert entry["steps"] <= entry["budget"] == 180
    lines = (tmp_path / "deepsea.jsonl").read_text().splitlines()
    assert len(lines) == 4
    monkeypatch.setattr(study.pool, "train_all", None)  # nothing is trained again
    again = study.train(trials, tmp_path, "deepsea")
    assert again == entries
    deepsea.show(entries, tmp_path)
    said = capsys.readouterr().out
    assert "| 3 | SU+ | " in said
    assert {path.suffix for path in tmp_path.glob("deepsea.*")} == {
        ".jsonl",
        ".json",
        ".md",
        ".png",
    }


def test_a_run_ends_when_it_has_learnt(tmp_path):
    options = DeepSeaOptions(agents=("su-plus",), sizes=(3,), seeds=1, episodes=4_000)
    (entry,) = study.train(deepsea.trials(options), tmp_path, "deepsea")
    assert entry["steps"] < 4_000
    point = deepsea.collect([entry])[0]
    assert point.greedy[0] is not None
    assert point.field[0] is not None
    last = [mean for _, mean in entry["evaluations"][-3:]]
    assert min(last) >= 0.985


def test_a_benchmark_that_was_stopped_continues(tmp_path):
    words = "bench deepsea --agents dqn --sizes 3 --seeds 2 --episodes 3000 --out"
    command = [sys.executable, "-m", "surveyor.cli", *words.split(), str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    runs, deadline = tmp_path / "runs", time.time() + 120
    while not list(runs.glob("deepsea/*/metrics.jsonl")) and time.time() < deadline:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said.decode()
    assert b"Rerun the same command to continue" in said
    before = (
        (tmp_path / "deepsea.jsonl").read_text() if (tmp_path / "deepsea.jsonl").exists() else ""
    )
    assert before.count("\n") < 2
    assert main([*words.split(), str(tmp_path)]) == 0
    lines = [json.loads(line) for line in (tmp_path / "deepsea.jsonl").read_text().splitlines()]
    assert sorted(line["seed"] for line in lines) == [0, 1]


@pytest.mark.parametrize("name", list(REGISTRY))
def test_help_tells_what_a_benchmark_does(name, capsys):
    with pytest.raises(SystemExit) as end:
        main(["bench", name, "--help"])
    assert end.value.code == 0
    assert "--agents" in capsys.readouterr().out


def test_bad_words_are_answered_in_one_sentence(capsys):
    assert main(["bench"]) == 2
    assert "surveyor bench deepsea" in capsys.readouterr().out
    for words, sentence in (
        (["bench", "deepsee"], "did you mean 'deepsea'?"),
        (["bench", "deepsea", "--seeds", "0"], "seeds must be at least 1"),
        (["bench", "deepsea", "--episodes", "0"], "episodes must be at least 1, not 0."),
        (["bench", "minigrid", "--tasks", "Empty"], "Empty-8x8"),
        (["bench", "bsuite", "--tasks", "catch"], "deep_sea"),
    ):
        assert main(words) != 0
        assert sentence in capsys.readouterr().err
