"""Callbacks see a run in training, stop it, evaluate it and keep its best state."""

import json
import os
import signal
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

import surveyor as sv
from surveyor.cli import main
from surveyor.runs import api
from surveyor.runs.folder import RunFolder
from surveyor.runs.loggers import scalars


class Watch(sv.Callback):
    """Write down every call."""

    def __init__(self):
        self.calls, self.records, self.evaluations = [], [], []

    def start(self, run):
        self.calls.append("start")

    def record(self, run, record):
        self.records.append(record)

    def evaluation(self, run, evaluation):
        self.evaluations.append((run.progress, evaluation.mean_return))

    def end(self, run):
        self.calls.append("end")


def train(*callbacks, episodes=60, agent="su-plus", env="Tree-8", **more):
    more = {"episodes": episodes, "stop_when_solved": False, **more}
    return sv.train(agent, env, callbacks=callbacks, **more)


def equal(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


def test_a_callback_sees_start_every_record_every_evaluation_and_the_end():
    watch = Watch()
    run = train(watch, sv.Evaluate(every=20, episodes=2))
    assert watch.calls == ["start", "end"]
    assert watch.records == run.metrics
    assert [at for at, _ in watch.evaluations] == [20, 40, 60]
    assert run.callbacks == ()


def test_callbacks_change_nothing():
    assert train(sv.Evaluate(every=20, episodes=2)).metrics == train().metrics


class StopAt(sv.Callback):
    def __init__(self, at, error=None):
        self.at, self.error = at, error

    def pause(self, at):
        return self.at if at < self.at else at + 1000

    def chunk(self, run):
        if run.progress >= self.at:
            if self.error is not None:
                raise self.error
            run.stop("it is late")


def test_a_stopped_run_says_why_and_resumes_to_the_same_end(tmp_path, capsys):
    whole = train(out=tmp_path / "whole")
    stopped = train(StopAt(30), out=tmp_path / "stopped")
    assert (stopped.progress, stopped.finished) == (30, False)
    assert stopped.result["stopped"] == stopped.stopped == "it is late"
    assert sv.load(stopped.folder.path).stopped == "it is late"
    assert main(["status", str(tmp_path / "stopped")]) == 0
    assert "it is late" in capsys.readouterr().out
    resumed = sv.resume(stopped.folder.path)
    assert resumed.metrics == whole.metrics
    assert equal(resumed.state, whole.state)
    assert resumed.stopped is None
    assert "stopped" not in resumed.result
    assert not (stopped.folder.path / "stopped.json").exists()


def test_a_run_stopped_at_its_start_is_not_trained(tmp_path):
    class Never(sv.Callback):
        def start(self, run):
            run.stop("not today")

    run = train(Never(), out=tmp_path)
    assert (run.progress, run.finished) == (0, False)
    assert RunFolder(run.folder.path).result() is None


@pytest.mark.parametrize("moment", ["start", "record", "evaluation", "chunk"])
def test_an_error_in_a_callback_leaves_a_run_that_can_be_loaded(tmp_path, moment):
    watch, broken = Watch(), sv.Callback()

    def fail(run, *_):
        raise ValueError("my mistake")

    setattr(broken, moment, fail)
    with pytest.raises(ValueError, match="my mistake"):
        train(watch, broken, sv.Evaluate(every=10, episodes=1), out=tmp_path)
    assert watch.calls == ["start", "end"]
    (path,) = tmp_path.iterdir()
    found = sv.load(path)
    assert len(found.metrics) == found.progress / 10
    assert (found.progress > 0) == (moment != "start")
    assert found.stopped == "a callback raised ValueError: my mistake"
    resumed = sv.resume(path)
    assert resumed.metrics == train().metrics


def test_every_end_is_called_even_if_one_fails():
    first, last, broken = Watch(), Watch(), sv.Callback()

    def fail(run):
        raise ValueError("my mistake")

    broken.end = fail
    with pytest.raises(ValueError, match="my mistake"):
        train(first, broken, last)
    assert first.calls == last.calls == ["start", "end"]


def test_the_best_state_is_kept_in_memory_and_on_disk(tmp_path, capsys):
    returns = iter([0.2, 0.9, 0.5])
    states = []

    class Best(sv.Callback):
        def evaluation(self, run, evaluation):
            states.append(jax.tree.map(np.array, run.state))

    evaluate = sv.Evaluate(every=20, episodes=3)
    with pytest.MonkeyPatch.context() as patch:
        worth = lambda run, episodes, seed: sv.Evaluation([next(returns)] * 3, [1] * 3)  # noqa: E731
        patch.setattr("surveyor.runs.callbacks.evaluate", worth)
        run = train(Best(), evaluate, out=tmp_path)
    assert evaluate.best_return == 0.9
    assert equal(evaluate.best_state, states[1])
    assert not equal(states[1], states[2])
    path = run.folder.path
    best = sv.load(path, best=True)
    assert equal(best.state, states[1])
    assert best.best["at"] == 40
    assert sv.evaluate(best, 2).lengths
    with pytest.raises(sv.SurveyorError, match="cannot be saved"):
        best.save(tmp_path / "copy")
    assert equal(sv.load(path).state, states[2])
    assert main(["evaluate", str(path), "--best"]) == 0
    assert "greedy policy after 40 episodes (its best)" in capsys.readouterr().out
    other = train(out=tmp_path, seed=1)
    with pytest.raises(sv.SurveyorError, match="has no best state"):
        sv.load(other.folder.path, best=True)


@pytest.mark.parametrize(
    ("env", "budget"), [("Chain-6", {"episodes": 60}), ("CartPole-v1", {"steps": 600})]
)
def test_evaluations_and_the_best_survive_a_kill(tmp_path, env, budget):
    every, agent = (20, "su-plus") if env == "Chain-6" else (150, "uniform")
    solved = {"stop_when_solved": False} if env == "Chain-6" else {}
    ways = {"whole": None, "killed": 2 * every + 10}
    found = {}
    for name, at in ways.items():
        config = api.configure(agent, env, **budget, **solved)
        evaluate = sv.Evaluate(every=every, episodes=3, seed=5)
        if at is not None:
            run = api.begin(config, tmp_path / name)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(run), "checkpoint", lambda self: 0.0)  # as if it were killed
                with pytest.raises(MemoryError):
                    api.finish(run, [evaluate, StopAt(at, MemoryError())])
            folder = run.folder
            assert len(folder.evaluations()) == 2
            assert sv.load(folder.path).progress == 0
        evaluate = sv.Evaluate(every=every, episodes=3, seed=5)
        run = api.finish(api.begin(config, tmp_path / name), [evaluate])
        assert [each["at"] for each in evaluate.records][:2] == [every, 2 * every]
        found[name] = (run.folder.evaluations(), evaluate.best_return, evaluate.best_state)
        best = sv.load(run.folder.path, best=True)
        assert equal(best.state, evaluate.best_state)
        assert best.best["mean_return"] == evaluate.best_return
    assert found["killed"][:2] == found["whole"][:2]
    assert equal(found["killed"][2], found["whole"][2])


def test_an_evaluation_that_a_kill_prevented_is_made_up_for(tmp_path):
    run = train(StopAt(20), out=tmp_path)
    watch, evaluate = Watch(), sv.Evaluate(every=20, episodes=1)
    resumed = sv.resume(run.folder.path, callbacks=[evaluate, watch])
    assert [at for at, _ in watch.evaluations] == [20, 40, 60]
    late = Watch()
    sv.resume(resumed.folder.path, callbacks=[late, sv.Evaluate(every=20, episodes=1)])
    assert late.evaluations == []  # all are there


def test_stop_when_an_evaluation_is_good_enough(tmp_path):
    watch = Watch()
    run = train(
        watch, sv.Evaluate(every=10, episodes=1), sv.StopWhen(mean_return=0.9), out=tmp_path
    )
    assert not run.finished
    assert run.progress == watch.evaluations[-1][0]
    assert [value >= 0.9 for _, value in watch.evaluations] == [False] * (
        len(watch.evaluations) - 1
    ) + [True]
    assert run.stopped.startswith("the mean return of evaluation is 1, at least 0.9")


def test_stop_when_training_is_good_enough_stops_everyone_at_the_same_record():
    ends = {train(sv.StopWhen(0.5, over=2), episodes=200).progress for _ in range(2)}
    assert len(ends) == 1
    run = train(sv.StopWhen(0.5, over=2), episodes=200)
    means = [scalars(record)["returns"] for record in run.metrics]
    assert np.mean(means[-2:]) >= 0.5
    assert all(np.mean(means[i : i + 2]) < 0.5 for i in range(len(means) - 2))
    assert not run.finished


def test_stop_when_looks_at_evaluations_alone_if_there_are_any():
    run = train(sv.StopWhen(0.5, over=1), sv.Evaluate(every=60, episodes=1))
    assert run.finished


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: sv.Evaluate(), "Evaluate needs either every or times."),
        (lambda: sv.Evaluate(10, times=3), "Evaluate needs either every or times."),
        (lambda: sv.Evaluate(0), "every must be a whole number of at least 1, not 0."),
        (
            lambda: sv.Evaluate(10, episodes=0),
            "episodes must be a whole number of at least 1, not 0.",
        ),
        (lambda: sv.StopWhen(0.5, over=0), "over must be at least 1, not 0."),
        (lambda: train(sv.TensorBoard()), "TensorBoard's files and beliefs go into the run folder"),
        (lambda: train(sv.Beliefs()), "TensorBoard's files and beliefs go into the run folder"),
    ],
)
def test_mistakes_get_one_sentence(make, sentence):
    with pytest.raises(sv.SurveyorError) as error:
        make()
    assert sentence in str(error.value)


def test_what_is_no_callback_is_refused_before_there_is_a_folder(tmp_path):
    code = (
        "import surveyor as sv\n"
        "for wrong in (3, sv.Callback):\n"
        "    try:\n"
        "        sv.train('uniform', 'Tree-4', out='out', callbacks=[wrong])\n"
        "    except sv.SurveyorError as error:\n"
        "        print(error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "3 is no callback: callbacks are objects of surveyor.Callback.",
        "<class 'surveyor.runs.callbacks.Callback'> is no callback: callbacks are objects of "
        "surveyor.Callback.",
    ]
    assert not (tmp_path / "out").exists()


def test_tensorboard_gets_records_and_evaluations_in_any_folder(tmp_path, monkeypatch):
    written = []

    class Writer:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, name, value, step):
            written.append((self.folder, name, value, step))

        def flush(self):
            pass

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Writer))
    run = train(sv.TensorBoard(tmp_path / "board"), sv.Evaluate(every=60, episodes=1))
    assert written.pop() == "closed"
    place = str(tmp_path / "board")
    record = run.metrics[0]
    assert (place, "test_return", record["test_return"], 10) in written
    assert [name for _, name, _, step in written if step == 60].count("evaluation_return") == 1
    written.clear()
    kept = train(out=tmp_path / "runs", tensorboard=True)
    assert written[0][0] == str(kept.folder.path / "tensorboard")


def test_wandb_gets_records_and_evaluations(monkeypatch):
    sent = []
    online = types.SimpleNamespace(
        log=lambda values, step: sent.append((values, step)), finish=lambda: sent.append("end")
    )
    fake = types.SimpleNamespace(init=lambda **options: sent.append(options) or online)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    run = train(sv.Evaluate(every=60, episodes=1), wandb="mine")
    assert sent[0]["project"] == "mine"
    assert sent[0]["id"] == run.config.name
    assert sent[-1] == "end"
    assert [step for _, step in sent[1:-1]] == [10, 20, 30, 40, 50, 60, 60]
    assert "evaluation_return" in sent[-2][0]


def test_beliefs_are_a_callback(tmp_path):
    run = train(sv.Beliefs(), out=tmp_path, episodes=20)
    assert RunFolder(run.folder.path).snapshot_times() == [0, 10, 20]


def test_ctrl_c_ends_callbacks(tmp_path):
    watch = Watch()

    def interrupt(run):
        os.kill(os.getpid(), signal.SIGINT)

    run = train(watch, report=interrupt, out=tmp_path)
    assert watch.calls == ["start", "end"]
    assert not run.finished
    assert json.loads((run.folder.path / "config.json").read_text())
    assert sv.load(run.folder.path).progress == run.progress
