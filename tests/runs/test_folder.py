"""Run folders: exact resumption, atomic writes, and refusal of damaged or foreign files."""

import dataclasses
import errno
import json
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import surveyor as sv
from surveyor.runs import api, checkpoint
from surveyor.runs.folder import RunFolder

FAST = dataclasses.replace(
    sv.SUPlus.preset("tree"), ensemble=4, batch_size=16, gradient_steps=2,
    replay="recent-and-best(4, 0)",
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    return sv.train(FAST, "Tree-5", seed=2, episodes=60, stop_when_solved=False, out=out)


@pytest.fixture
def copy(finished, tmp_path):
    return finished.save(tmp_path / "copy")


def same_state(a, b):
    pairs = zip(jax.tree.leaves(a.loop), jax.tree.leaves(b.loop), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


def test_the_folder_contains_config_result_and_metrics(finished):
    path = finished.folder.path
    assert path.name.startswith("Tree-5-su-plus-s2-")
    config = json.loads((path / "config.json").read_text())
    assert config["hyperparameters"]["spread"] == 10_000
    assert config["versions"]["jax"] == jax.__version__
    result = json.loads((path / "result.json").read_text())
    assert {**result, "path": str(path)} == finished.result
    records = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert records == finished.metrics
    assert not list(path.rglob("*.tmp"))


def test_load_restores_the_run(finished):
    loaded = sv.load(finished.folder.path)
    assert same_state(loaded, finished)
    assert loaded.metrics == finished.metrics
    assert loaded.config == finished.config
    assert loaded.finished


def test_save_load_predict_evaluate_and_posterior(finished, copy):
    loaded = sv.load(copy)
    obs = np.arange(5) * 2
    for deterministic in (True, False):
        action, _ = loaded.predict(obs, deterministic=deterministic)
        assert action.shape == (5,)
        assert set(action.tolist()) <= {0, 1}
    action, state = loaded.predict(np.int64(0))
    assert action.shape == ()
    assert state is None
    _, index = loaded.predict(0, deterministic=False)
    np.testing.assert_array_equal(loaded.predict(obs, index, deterministic=False)[1], index)
    begun = np.array([True])  # a new episode: one of ten samples, perhaps the same one again
    fresh = [loaded.predict(obs, index, begun, deterministic=False)[1] for _ in range(40)]
    assert not all(np.array_equal(each, index) for each in fresh)
    belief, original = loaded.q_posterior(obs), finished.q_posterior(obs)
    np.testing.assert_array_equal(belief.covariance, original.covariance)
    outcome = sv.evaluate(loaded, episodes=5)
    assert len(outcome.returns) == 5
    assert outcome.mean_return == pytest.approx(np.mean(outcome.returns))


def test_a_solved_run_predicts_the_optimal_path():
    run = sv.train("su-plus", "Tree-12", seed=3)
    actions, _ = run.predict(np.arange(12) * 2)
    np.testing.assert_array_equal(actions, sv.envs.make("Tree-12", 3)[1].mapping)
    assert sv.evaluate(run).optimal == 1.0


def test_an_interrupted_run_resumes_bit_identically(finished, tmp_path):
    config = finished.config
    run = api.begin(config, tmp_path)
    for _ in run.advance():
        run.checkpoint()
        break
    run.folder.append([{"episode": 999}])  # written after the checkpoint, then killed
    with open(run.folder.path / "metrics.jsonl", "ab") as file:
        file.write(b'{"episode": 10')  # incomplete line
    again = sv.resume(run.folder.path)
    assert again.finished
    assert same_state(again, finished)
    assert (again.folder.path / "metrics.jsonl").read_bytes() == (
        finished.folder.path / "metrics.jsonl"
    ).read_bytes()


def test_train_continues_started_runs_and_repeats_finished_ones(finished, tmp_path):
    run = api.begin(finished.config, tmp_path)
    next(iter(run.advance()))
    run.checkpoint()
    begun = int(run.loop.episode)
    assert int(api.begin(finished.config, tmp_path).loop.episode) == begun
    sv.resume(run.folder.path)
    assert int(api.begin(finished.config, tmp_path).loop.episode) == 0


def test_loading_a_run_in_training_does_not_change_it(finished, tmp_path, monkeypatch):
    monkeypatch.setattr("surveyor.training.episode_runner.CHUNK_SECONDS", 1e-9)
    run = api.begin(finished.config, tmp_path)
    chunks = run.advance()
    next(chunks)
    run.checkpoint()
    next(chunks)
    assert len(sv.load(run.folder.path).metrics) < len(run.metrics)
    next(chunks)
    run.checkpoint()
    assert len(sv.load(run.folder.path).metrics) == len(run.metrics)


def test_invalid_observations_are_refused(finished):
    for bad in (11, -1, 1.5, [0, 99]):
        with pytest.raises(sv.SurveyorError, match="whole numbers from 0 to 10"):
            finished.predict(bad)


def test_an_incomplete_last_line_is_ignored(copy):
    metrics = copy / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes() + b'{"episode": 70, "ret')
    assert len(RunFolder.open(copy).metrics()) == 6


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        content = content[: len(content) // 2]
    elif how == "empty":
        content = bytearray()
    else:
        middle = slice(len(content) // 2, len(content) // 2 + 64)  # not only a date in the archive
        content[middle] = bytes(byte ^ 0xFF for byte in content[middle])
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("how", ["truncated", "empty", "flipped"])
def test_a_damaged_checkpoint_is_refused(copy, how):
    damage(copy / "checkpoint" / "state.npz", how)
    with pytest.raises(sv.SurveyorError, match="damaged and cannot be read"):
        sv.load(copy)


def test_a_checkpoint_with_a_pickle_is_refused(copy):
    np.savez(copy / "checkpoint" / "state.npz", meta=np.array([{"evil": 1}], object))
    with pytest.raises(sv.SurveyorError, match="damaged and cannot be read"):
        sv.load(copy)


def test_other_hyperparameters_are_refused(copy):
    config = json.loads((copy / "config.json").read_text())
    config["hyperparameters"]["curiosity"] = 2.0
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(sv.SurveyorError, match="other hyperparameters"):
        sv.resume(copy)
    config["hyperparameters"] = {"temperature": 1}
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(sv.SurveyorError, match="other hyperparameters"):
        sv.load(copy)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"not json", b"\xff\xfe"])
def test_a_foreign_folder_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(sv.SurveyorError, match="not the configuration of a surveyor run"):
        sv.load(tmp_path)


def start(out, *extra):
    command = [
        sys.executable, "-m", "surveyor.cli", "train", "Chain-16", "--episodes", "3000",
        "--keep-going", "--no-beliefs", "--seed", "3", "--out", str(out), *extra,
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def records(out):
    return sum(len(path.read_bytes().splitlines()) for path in out.glob("*/metrics.jsonl"))


def wait_for_metrics(out, count):
    """Wait until training has begun, so that a signal arrives during it and not during imports."""
    deadline = time.monotonic() + 120
    while records(out) <= count // 2 and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_is_bit_identical(tmp_path):
    assert start(tmp_path / "whole").wait() == 0
    (whole,) = (tmp_path / "whole").iterdir()
    rng = random.Random(0)
    process, out, kills, seen = start(tmp_path / "killed"), tmp_path / "killed", 0, [0]
    while kills < 2:
        wait_for_metrics(out, seen[-1])
        time.sleep(rng.uniform(0.2, 2.5))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        (run,) = out.iterdir()
        seen.append(records(out))
        command = [sys.executable, "-m", "surveyor.cli", "resume", str(run)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait() == 0
    assert kills == 2, seen
    (run,) = out.iterdir()
    assert run.name == whole.name
    assert (run / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    assert same_state(sv.load(run), sv.load(whole))


def test_ctrl_c_saves_everything(tmp_path):
    process = start(tmp_path)
    wait_for_metrics(tmp_path, 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    (path,) = tmp_path.iterdir()
    run = sv.load(path)
    assert 0 < int(run.loop.episode) < 3000
    assert len(run.metrics) == len((path / "metrics.jsonl").read_bytes().splitlines())
    assert not run.finished


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path):
    config = api.configure("uniform", "Tree-20", episodes=1000)
    first, second = sv.Run.new(config, tmp_path / "run"), sv.Run.open(tmp_path / "run")
    chunks = first.advance()
    next(chunks)
    with pytest.raises(sv.SurveyorError, match="another process"):
        next(second.advance())
    chunks.close()
    next(second.advance())


def test_a_full_disk_is_reported_and_the_last_checkpoint_kept(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    checkpoint.save(path, {"x": np.arange(3)}, {})
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(sv.SurveyorError, match="The disk is full"):
        checkpoint.save(path, {"x": np.arange(4)}, {})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]
