"""The rows of a replay on disk: what is appended, what a kill leaves, and damage."""

import errno
import itertools
import os
import pathlib
import shutil
import tracemalloc
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.errors import SurveyorError
from surveyor.replay.ring import Ring
from surveyor.runs import checkpoint, replay_log
from surveyor.runs.replay_log import ReplayLog

CAPACITY, WIDTH = 32, 3 * 4 + 2
"""Rows of the tests' replay, and bytes of each."""


@pytest.fixture(autouse=True)
def small_segments(monkeypatch):
    monkeypatch.setattr(replay_log, "LEAST_ROWS", 2)
    monkeypatch.setattr(replay_log, "BATCH_BYTES", 3 * WIDTH)
    monkeypatch.setattr(os, "fsync", lambda file: None)  # the slowest part by far


def ring(written, xp=np, branch=0):
    """Return a ring after `written` rows; row n of a branch is known, and two rows are behind."""
    numbers = [max((n for n in range(written) if n % CAPACITY == r), default=-1) for r in range(32)]
    obs = np.zeros((CAPACITY + 2, 3), np.float32)
    obs[:CAPACITY] = [[n + 1, branch, n % 7] if n >= 0 else [0, 0, 0] for n in numbers]
    flags = np.asarray([[n % 3 == 1, n % 5 == 1] for n in numbers] + [[True, True]] * 2)
    flags[:CAPACITY][np.asarray(numbers) < 0] = False
    arrays = {"obs": xp.asarray(obs), "action": xp.asarray(flags)}
    return Ring(arrays, xp.asarray(written, xp.int32), CAPACITY)


def blank(xp=np):
    """Return arrays to read into: of NumPy, or the shapes of JAX's."""
    shapes = {"obs": ((CAPACITY + 2, 3), np.float32), "action": ((CAPACITY + 2, 2), bool)}
    make = np.zeros if xp is np else jax.ShapeDtypeStruct
    return Ring({name: make(*of) for name, of in shapes.items()}, np.zeros((), np.int32), CAPACITY)


def write(log, rows):
    with log.appended(rows) as found:
        checkpoint.save(log._state, {}, {"log": found})


def read(path, xp=np):
    """Return the log as another process sees it, and the ring in it."""
    log = ReplayLog(path)
    return log, log.read(checkpoint.load(path, {})[1]["log"], blank(xp))


def same(found, expected):
    """Return whether two rings have the same rows; those behind are not in the log."""
    rows = [
        [ring.arrays[name][:CAPACITY] for name in ("obs", "action")] for ring in (found, expected)
    ]
    return all(map(np.array_equal, *rows)) and found.written == expected.written


def files(log):
    return sorted(log.folder.iterdir())


def sizes(log):
    return {path.name: path.stat().st_size for path in files(log)}


@pytest.fixture
def state(tmp_path):
    return tmp_path / "run" / "state.npz"


@pytest.fixture
def log(state):
    state.parent.mkdir()
    return ReplayLog(state)


@pytest.mark.parametrize("xp", [np, jnp])
def test_a_checkpoint_writes_the_new_rows_only(log, state, xp):
    write(log, ring(11, xp))
    before = {path: path.stat().st_mtime_ns for path in files(log)}
    assert sum(sizes(log).values()) == 11 * WIDTH
    write(log, ring(14, xp))
    assert sum(sizes(log).values()) == 14 * WIDTH
    assert [path.stat().st_mtime_ns == at for path, at in before.items()] == [True] * 5 + [False]
    assert same(read(state, xp)[1], ring(14))
    before = {path: path.stat().st_mtime_ns for path in files(log)}
    write(log, ring(14, xp))
    assert {path: path.stat().st_mtime_ns for path in files(log)} == before


@pytest.mark.parametrize("step", [1, 5, 31, 32, 33, 100])
def test_overwritten_segments_are_removed_and_the_ring_is_read_back(log, state, step):
    for written in range(0, 10 * step, step):
        write(log, ring(written))
        kept = sum(sizes(log).values())
        assert kept >= min(written, CAPACITY) * WIDTH
        assert kept <= CAPACITY * WIDTH * 17 / 16
        assert same(read(state)[1], ring(written))


@pytest.mark.parametrize("xp", [np, jnp])
def test_another_process_continues_the_log(state, log, xp):
    write(log, ring(40, xp))
    for written in (47, 61, 62, 90):
        log, found = read(state, xp)
        assert all(isinstance(x, np.ndarray) == (xp is np) for x in found.arrays.values())
        names = sizes(log)
        write(log, ring(written, xp))
        assert names.keys() & sizes(log).keys()  # it was not written anew
    assert same(read(state)[1], ring(90))


class KilledError(BaseException):
    """A kill: nothing may handle it."""


def die_at(monkeypatch, call):
    """Kill the process at one of the calls that change files or are between such."""
    calls = itertools.count()

    def dying(function):
        def called(*args, **kwargs):
            if next(calls) == call:
                raise KilledError
            return function(*args, **kwargs)

        return called

    places = [(os, "fsync"), (os, "replace"), (os, "truncate"), (pathlib.Path, "unlink")]
    for place, name in [*places, (zlib, "crc32"), (os, "open")]:
        monkeypatch.setattr(place, name, dying(getattr(place, name)))


@pytest.mark.parametrize("then", [43, 54, 90])
def test_a_kill_at_any_moment_leaves_the_old_checkpoint_or_the_new_one(tmp_path, then):
    (tmp_path / "run").mkdir()
    write(ReplayLog(tmp_path / "run" / "state.npz"), ring(41))
    outcomes = []
    for call in itertools.count():
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        state = tmp_path / "copy" / "state.npz"
        log, _ = read(state)
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, call)
            try:
                write(log, ring(then))
            except KilledError:
                pass
            else:
                break
        log, found = read(state)
        outcomes.append(int(found.written))
        assert same(found, ring(outcomes[-1]))
        write(log, ring(100))  # the next process goes on
        assert same(read(state)[1], ring(100))
        assert sum(sizes(log).values()) <= CAPACITY * WIDTH * 17 / 16
    assert set(outcomes) == {41, then}
    assert len(outcomes) >= 7


def test_rows_after_the_last_checkpoint_are_not_read_and_replaced(log, state):
    write(log, ring(9))
    with pytest.raises(KilledError), log.appended(ring(14)):
        raise KilledError
    left = sizes(log)
    assert sum(left.values()) == 14 * WIDTH
    again, found = read(state)
    assert same(found, ring(9))
    assert sizes(log) == left  # reading changes nothing: another process may be training
    write(again, ring(12, branch=1))  # another history, as after episodes that cannot be restored
    expected = ring(12, branch=1)
    expected.arrays["obs"][:9, 1] = 0
    assert same(read(state)[1], expected)
    assert sum(sizes(log).values()) == 12 * WIDTH


def test_a_log_that_another_process_has_continued_is_written_anew(log, state):
    write(log, ring(40))
    other, _ = read(state)
    write(other, ring(70, branch=1))
    write(log, ring(44))
    assert same(read(state)[1], ring(44))
    write(log, ring(46))
    assert same(read(state)[1], ring(46))
    write(other, ring(72, branch=1))
    assert same(read(state)[1], ring(72, branch=1))


def test_a_lost_segment_is_written_again(log, state):
    write(log, ring(20))
    files(log)[3].unlink()
    write(log, ring(21))
    assert same(read(state)[1], ring(21))


def break_file(path, how):
    if how == "missing":
        return path.unlink()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    return path.write_bytes(content[:-1] if how == "short" else content)


@pytest.mark.parametrize("which", [0, 7, -1])
@pytest.mark.parametrize(
    ("how", "said"),
    [("missing", "is missing"), ("short", "is too short"), ("changed", "has another checksum")],
)
def test_a_damaged_segment_is_refused_in_one_sentence(log, state, which, how, said):
    write(log, ring(61))
    broken = files(log)[which]
    break_file(broken, how)
    with pytest.raises(SurveyorError) as error:
        read(state)
    assert str(error.value) == (
        f"The checkpoint '{state}' is damaged and cannot be read (replay/{broken.name} {said}); "
        "delete it to restart the run from the beginning."
    )


def test_other_columns_and_checkpoints_without_a_log_do_not_fit(log, state):
    write(log, ring(5))
    other = blank()
    other.arrays["obs"] = np.zeros((CAPACITY + 2, 4), np.float32)
    for saved, like in ((checkpoint.read_meta(state)["log"], other), (None, blank())):
        with pytest.raises(SurveyorError, match="does not fit this run"):
            ReplayLog(state).read(saved, like)


def test_numpy_arrays_are_filled_in_place_without_a_second_copy(log, state, monkeypatch):
    monkeypatch.setattr(replay_log, "BATCH_BYTES", 1 << 20)
    full = np.ones((16_000, 1000), np.float32)  # 64 MB
    number = np.array(16_000, np.int32)
    write(log, Ring({"obs": full}, number, len(full)))
    like = Ring({"obs": np.zeros_like(full)}, number, len(full))
    saved = checkpoint.read_meta(state)["log"]
    tracemalloc.start()
    try:
        found = ReplayLog(state).read(saved, like)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.arrays["obs"] is like.arrays["obs"]
    assert np.all(found.arrays["obs"] == 1)
    assert peak < 8e6


def test_from_an_accelerator_only_the_new_rows_are_copied(log, state, monkeypatch):
    sliced = []

    def watched(array, first, length):
        sliced.append(length)
        return jax.lax.dynamic_slice_in_dim(array, first, length)

    monkeypatch.setattr(replay_log, "_in_memory", lambda array: False)
    monkeypatch.setattr(replay_log, "_slice", watched)
    for written in (20, 31, 38, 60):
        write(log, ring(written, jnp))
        assert same(read(state)[1], ring(written))
    assert set(sliced) == {3}  # one program, for batches of three rows


def test_a_full_disk_keeps_the_checkpoint_and_takes_back_what_was_appended(log, state, monkeypatch):
    write(log, ring(9))
    before = sizes(log)
    sync = os.fsync
    for last in range(6):
        calls = itertools.count()

        def full(file, last=last, calls=calls):
            if next(calls) == last:
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(file)

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(
                SurveyorError, match=r"disk is full: '.*state\.npz' was not written"
            ):
                write(log, ring(13))
        assert sizes(log) == before
        assert same(read(state)[1], ring(9))
    write(log, ring(13))
    assert same(read(state)[1], ring(13))
