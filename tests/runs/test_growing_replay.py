"""Checkpoints of runs whose replay is full: only new rows are written, and nothing else changes."""

import dataclasses
import os
import shutil

import jax
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import surveyor as sv
from surveyor.replay.steps import ENDED
from surveyor.runs import api, checkpoint, replay_log
from surveyor.runs.folder import RunFolder
from surveyor.runs.replay_log import ReplayLog
from surveyor.runs.run import Run
from tests.training.scripted import QUICK, Scripted

SMALL = {"hidden": 8, "warmup": 40, "replay": "prioritised(0.6)", "n_step": 2}
HOST = dataclasses.replace(
    sv.DQN.preset("classic"), **SMALL, envs=2, train_every=2, replay_capacity=60
)
COMPILED = dataclasses.replace(sv.DQN.preset("minatar"), **SMALL, replay_capacity=160)
EPISODES = dataclasses.replace(
    sv.SUPlus.preset("tree"), ensemble=4, batch_size=16, gradient_steps=2,
    replay="recent-and-best(4, 4)", replay_capacity=45,
)  # fmt: skip
CONFIGS = {
    "host": api.configure(HOST, "CartPole-v1", steps=200),
    "frames": api.configure(HOST, "CartPole-v1", steps=200, frame_stack=3),
    "compiled": api.configure(COMPILED, "MinAtar/Breakout", steps=600),
    "episodes": api.configure(EPISODES, "Tree-5", episodes=60, stop_when_solved=False),
}


@pytest.fixture(autouse=True)
def small_segments(monkeypatch):
    monkeypatch.setattr(replay_log, "LEAST_ROWS", 2)
    monkeypatch.setattr(os, "fsync", lambda file: None)
    monkeypatch.setattr("surveyor.training.episode_runner.CHUNK_SECONDS", 1e-9)
    monkeypatch.setattr("surveyor.runs.run.CHECKPOINT_SECONDS", np.inf)  # only where tests ask


def rows(run):
    """Return the sizes of all segments by name."""
    found = (run.folder.path / "checkpoint" / "replay").iterdir()
    return {path.name: path.stat().st_size for path in sorted(found)}


def width(run):
    """Return the bytes of a row, and how many rows there can be."""
    ring = run.loop.replay.split()[0]
    return sum(x[0].nbytes for x in ring.arrays.values()), ring.capacity


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return runs with a checkpoint in the middle of training, by kind."""
    runs = {}

    def begin(kind):
        if kind not in runs:
            runs[kind] = api.begin(CONFIGS[kind], tmp_path_factory.mktemp(kind))
            for _ in runs[kind].advance():
                if runs[kind].progress >= CONFIGS[kind].budget // 2:
                    break
            runs[kind].checkpoint()
        return runs[kind]

    return begin


def count_bytes(monkeypatch):
    """Return a list with the size of every batch of rows that is written from now on."""
    sizes, batches = [], replay_log._batches

    def counted(*args):
        for batch in batches(*args):
            sizes.append(len(batch))
            yield batch

    monkeypatch.setattr(replay_log, "_batches", counted)
    return sizes


@pytest.mark.parametrize("kind", CONFIGS)
def test_checkpoints_past_a_full_ring_write_what_is_new_and_resume_to_the_same_bits(
    kind, tmp_path, monkeypatch
):
    whole = api.finish(api.begin(CONFIGS[kind], None))
    size, capacity = width(whole)
    run, before, chunks, written = api.begin(CONFIGS[kind], tmp_path), 0, 0, []
    sizes = count_bytes(monkeypatch)
    for part in (1, 2):
        for _ in run.advance():
            chunks += 1
            run.checkpoint()
            now = int(run.loop.replay.written)
            assert sum(sizes) == size * min(now - before, capacity)
            written.append(now - before)
            before = now
            sizes.clear()
            if run.progress >= whole.config.budget * part // 2:
                break
        last, run = run, Run.open(run.folder.path)
        assert all(map(np.array_equal, *map(jax.tree.leaves, (last.loop, run.loop))))
    assert run.finished
    assert all(map(np.array_equal, *map(jax.tree.leaves, (whole.loop, run.loop))))
    assert chunks >= 6
    assert min(written) < capacity < before / 3
    assert min(rows(run)) > "00000000.rows"  # the first segments are gone
    assert sum(rows(run).values()) <= size * (capacity * 17 / 16 + 2)


@pytest.mark.parametrize("kind", CONFIGS)
def test_what_was_learnt_is_read_without_the_rows(kind, begun, tmp_path):
    path = begun(kind).save(tmp_path / "copy")
    shutil.rmtree(path / "checkpoint" / "replay")
    look = Run.open(path, replay=False)
    assert all(map(np.array_equal, *map(jax.tree.leaves, (look.state, begun(kind).state))))
    assert look.progress == begun(kind).progress
    with pytest.raises(sv.SurveyorError, match="without its replay, so it cannot be trained"):
        next(look.advance())
    with pytest.raises(sv.SurveyorError, match="without its replay, so it cannot be saved"):
        look.save(tmp_path / "other")
    with pytest.raises(sv.SurveyorError, match=r"damaged.*rows is missing"):
        Run.open(path)


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_checkpoint_of_an_earlier_version_is_refused(kind, begun, tmp_path):
    run = begun(kind)
    path = run.save(tmp_path / "copy")
    meta = checkpoint.read_meta(path / "checkpoint" / "state.npz")
    loop, host = run.loop, kind in ("host", "frames")
    old = (loop.learning, loop.replay, loop.obs) if host else loop
    del meta["log"]
    checkpoint.save(path / "checkpoint" / "state.npz", old, meta)
    for replay in (True, False):
        with pytest.raises(sv.SurveyorError) as error:
            Run.open(path, replay=replay)
        assert str(error.value).endswith(
            "does not fit this run: it was written with other hyperparameters or by another "
            "version of surveyor."
        )


def test_a_copy_is_whole_and_a_new_run_in_its_place_has_nothing_of_it(begun, tmp_path):
    run = begun("host")
    path = run.save(tmp_path / "copy")
    size, capacity = width(run)
    copy = Run.open(path)
    assert sum(rows(copy).values()) == size * capacity  # no row that was overwritten
    assert all(map(np.array_equal, *map(jax.tree.leaves, (run.loop, copy.loop))))
    run.save(path)  # in place of itself
    assert sum(rows(copy).values()) == size * capacity
    RunFolder.create(path, run.config)
    assert {file.name for file in path.rglob("*") if file.is_file()} == {"config.json"}


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_read_again(begun, tmp_path, monkeypatch):
    path = begun("host").save(tmp_path / "copy")
    trained, read, tries = Run.open(path), ReplayLog.read, []

    def late(self, log, ring):
        tries.append(log)
        if len(tries) == 1:
            for _ in trained.advance():
                if trained.progress >= 170:
                    break
            trained.checkpoint()
        return read(self, log, ring)

    monkeypatch.setattr(ReplayLog, "read", late)
    found = Run.open(path)
    assert len(tries) == 2
    assert all(map(np.array_equal, *map(jax.tree.leaves, (found.loop, trained.loop))))


def test_the_cut_of_episodes_that_cannot_be_restored_is_kept_by_later_checkpoints(tmp_path):
    def make():
        return SyncVectorEnv([Scripted] * 2)

    config = api.configure(dataclasses.replace(QUICK, n_step=3), make(), steps=100)
    run, cuts = api.begin(config, tmp_path), []
    for until in (30, 58):
        for _ in run.advance():
            if run.progress >= until:
                break
        run.checkpoint()
        run = Run.open(run.folder.path, make())
        cuts.append(int(run.loop.replay.written) - 1)
        assert np.all(run.loop.replay.flags[cuts] & ENDED)
    assert cuts[1] > cuts[0]
