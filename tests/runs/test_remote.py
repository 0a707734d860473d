"""Storage at URLs, backed by a folder that tests can block."""

import dataclasses
import errno
import itertools
import threading
import time
import zipfile

import jax
import numpy as np
import pytest

import surveyor as sv
from surveyor.errors import HeldError
from surveyor.launch import work
from surveyor.runs import api, remote, storage
from surveyor.runs.folder import RunFolder

CONFIG = api.configure("uniform", "Tree-4", episodes=200)


def ignore(record, now):
    pass


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(remote, "SETTLE_SECONDS", 0.02)


def test_remote_and_local_runs_are_identical(tmp_path):
    here, there = storage.at(tmp_path / "here"), storage.at(f"file://{tmp_path}/there")
    here.prepare()
    there.prepare()
    first, second = (work.train_run(CONFIG, where, ignore) for where in (here, there))
    assert first["finished"]
    assert second["finished"]
    assert second["path"] == f"file://{tmp_path}/there/{CONFIG.name}"
    one, other = (tmp_path / place / CONFIG.name for place in ("here", "there"))
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    states = [sv.load(path).loop for path in (one, other)]
    assert all(map(np.array_equal, *map(jax.tree.leaves, states)))
    assert not (tmp_path / "there" / CONFIG.name / "lease.json").exists()
    again = work.train_run(CONFIG, there, ignore)
    assert again == {**second, "finished": True}
    assert there.outcome(CONFIG) == {key: second[key] for key in second if key != "finished"}


def test_snapshots_are_uploaded(tmp_path):
    url = f"file://{tmp_path}/there"
    work.train_run(CONFIG, storage.at(url), ignore, options=work.RunOptions(beliefs=True))
    times = RunFolder(tmp_path / "there" / CONFIG.name).snapshot_times()
    assert (times[0], times[-1]) == (0, 200)
    with storage.at(url).mirrored(beliefs=True) as folder:
        assert RunFolder(folder / CONFIG.name).snapshot_times() == times


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"until": "x", "owner": 1}'])
def test_an_invalid_lease_is_ignored(tmp_path, content):
    (tmp_path / CONFIG.name).mkdir()
    (tmp_path / CONFIG.name / "lease.json").write_text(content)
    where = storage.at(f"file://{tmp_path}")
    assert not where.is_held(CONFIG.name)
    assert work.train_run(CONFIG, where, ignore)["finished"]


def test_memory_is_refused_as_storage():
    with pytest.raises(sv.SurveyorError, match="processes share no memory"):
        storage.at("memory://x")


def test_a_stopped_run_continues_elsewhere_from_its_upload(tmp_path):
    url = f"file://{tmp_path}/there"
    stopped = work.train_run(CONFIG, storage.at(url), ignore, stop=lambda: True)
    assert not stopped["finished"]
    seen = []
    done = work.train_run(CONFIG, storage.at(url), lambda record, now: seen.append(now["episodes"]))
    assert done["finished"]
    whole = work.train_run(CONFIG, _made(tmp_path / "here"), ignore)
    one, other = (tmp_path / place / CONFIG.name / "metrics.jsonl" for place in ("here", "there"))
    assert one.read_bytes() == other.read_bytes()
    assert whole["episodes"] == done["episodes"]


def _made(path):
    where = storage.at(path)
    where.prepare()
    return where


@pytest.mark.parametrize("kind", ["folder", "url"])
def test_a_run_has_one_claim_at_a_time(tmp_path, kind):
    out = tmp_path if kind == "folder" else f"file://{tmp_path}"
    one, other = storage.at(out), storage.at(out)
    with one.claimed("run"):
        assert other.is_held("run")
        with pytest.raises(HeldError), other.claimed("run"):
            pass
    assert not other.is_held("run")
    with other.claimed("run"):
        pass


def test_a_lease_expires_unless_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "LEASE_SECONDS", 0.2)
    dead, alive = remote.Remote(f"file://{tmp_path}"), remote.Remote(f"file://{tmp_path}")
    dead._renew("run", first=True)
    with pytest.raises(HeldError), alive.claimed("run"):
        pass
    time.sleep(0.25)
    claim = alive.claimed("run")
    claim.__enter__()
    time.sleep(0.4)  # longer than a lease, which must be renewed
    assert dead.is_held("run")
    dead._renew("run", first=False)  # a process that was suspended overwrites the lease
    with pytest.raises(HeldError):
        claim.__exit__(None, None, None)
    assert dead.is_held("run")  # the lease of another process is not removed


def test_a_lease_is_renewed_during_an_upload(tmp_path):
    where = remote.Remote(f"file://{tmp_path}")
    where._renew("run", first=True)
    with where._committed("run/big") as file:
        file.write(b"1")
        where._renew("run")
        file.write(b"2")
    assert (tmp_path / "run" / "big").read_bytes() == b"12"


def test_files_removed_from_a_run_are_removed_from_remote_storage(tmp_path):
    where = remote.Remote(f"file://{tmp_path}")
    work.train_run(CONFIG, where, ignore)
    where.fail(CONFIG.name, "an old reason")
    folder = tmp_path / CONFIG.name
    with where.claimed(CONFIG.name) as claim:
        RunFolder.create(claim.root / CONFIG.name, CONFIG)
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"config.json"}


def test_a_run_killed_before_writing_its_result_is_not_trained_again(tmp_path):
    where = _made(tmp_path)
    first = work.train_run(CONFIG, where, ignore)
    (tmp_path / CONFIG.name / "result.json").unlink()
    seen = []
    again = work.train_run(CONFIG, where, lambda record, now: seen.append(now))
    assert again == first
    assert seen == []


def test_temporarily_unreadable_files_are_not_replaced(tmp_path, monkeypatch):
    where = _made(tmp_path)
    work.train_run(CONFIG, where, ignore, stop=lambda: True)
    checkpoint = tmp_path / CONFIG.name / "checkpoint" / "state.npz"
    before = checkpoint.read_bytes()

    def stale(*args, **kwargs):
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZipFile", stale)
        with pytest.raises(OSError, match="Stale"):
            work.train_run(CONFIG, where, ignore)
    assert checkpoint.read_bytes() == before


def test_unreachable_storage_is_retried_until_the_timeout(tmp_path):
    where = remote.Remote(f"file://{tmp_path}/there", timeout=20.0)
    where.prepare()
    blocked = tmp_path / "there" / "blocked"
    blocked.write_text("")  # a file in place of a folder blocks writes below it
    timer = threading.Timer(0.7, blocked.unlink)
    timer.start()
    where.write("blocked/x.json", "{}")
    assert (tmp_path / "there" / "blocked" / "x.json").read_text() == "{}"
    blocked = tmp_path / "there" / "for-good"
    blocked.write_text("")
    where.timeout = 0.6
    with pytest.raises(sv.SurveyorError, match="has not answered for"):
        where.write("for-good/x.json", "{}")


def test_an_unknown_url_scheme_is_refused():
    with pytest.raises(sv.SurveyorError, match="cannot be used as storage"):
        storage.at("nowhere://bucket")


ROWS = "checkpoint/replay"


@pytest.fixture
def grown(monkeypatch):
    """Return a function that trains a claimed run by a chunk and writes a checkpoint."""
    monkeypatch.setattr("surveyor.training.episode_runner.CHUNK_SECONDS", 1e-9)
    monkeypatch.setattr("surveyor.runs.replay_log.LEAST_ROWS", 16)
    agent = dataclasses.replace(
        sv.SUPlus.preset("tree"), ensemble=4, batch_size=4, gradient_steps=1,
        replay="uniform", replay_capacity=64,
    )  # fmt: skip
    config = api.configure(agent, "Tree-4", episodes=400, stop_when_solved=False)

    def grow(claim, chunks=1):
        run = api.begin(config, claim.root)
        for n, _ in enumerate(run.advance(), 1):
            if n == chunks:
                break
        run.checkpoint()
        return run

    return config.name, grow


def watched(monkeypatch):
    """Return a list of all uploads and removals from now on, without leases."""
    done, upload, remove = [], remote.Remote.upload, remote.Remote.remove

    def note(word, function):
        def noted(self, name, *content):
            if not name.endswith("lease.json"):
                done.append((word, name.partition("/")[2]))
            return function(self, name, *content)

        return noted

    monkeypatch.setattr(remote.Remote, "upload", note("upload", upload))
    monkeypatch.setattr(remote.Remote, "remove", note("remove", remove))
    return done


def test_rows_are_uploaded_before_the_checkpoint_and_once(tmp_path, monkeypatch, grown):
    name, grow = grown
    done = watched(monkeypatch)
    seen = []
    for _ in range(5):
        with remote.Remote(f"file://{tmp_path}").claimed(name) as claim:
            run = grow(claim)
            local = {file.name for file in (run.folder.path / ROWS).iterdir()}
        there = {file.name for file in (tmp_path / name / ROWS).iterdir()}
        assert there == local
        state = done.index(("upload", "checkpoint/state.npz"))
        rows = [(word, what) for word, what in done if what.startswith(ROWS)]
        for step in rows:
            assert (done.index(step) < state) == (step[0] == "upload")
        seen.append(rows)
        done.clear()
    uploads = [{what for word, what in rows if word == "upload"} for rows in seen]
    for earlier, later in itertools.pairwise(uploads):
        assert len(earlier & later) <= 1  # the segment that was not yet complete
    assert any(word == "remove" for rows in seen for word, _ in rows)
    stored = RunFolder.open(tmp_path / name)
    assert all(map(np.array_equal, *map(jax.tree.leaves, (sv.load(stored.path).loop, run.loop))))


def test_an_upload_that_ends_before_the_checkpoint_leaves_the_last_one(
    tmp_path, monkeypatch, grown
):
    name, grow = grown
    where = remote.Remote(f"file://{tmp_path}")
    with where.claimed(name) as claim:
        before = jax.tree.leaves(grow(claim, 4).loop)
    upload = remote.Remote.upload

    def lost(self, file, content):
        if file.endswith("state.npz"):
            raise SystemExit  # the process is killed
        upload(self, file, content)

    with monkeypatch.context() as patch:
        patch.setattr(remote.Remote, "upload", lost)
        with pytest.raises(SystemExit), where.claimed(name) as claim:
            grow(claim, 2)
    assert all(map(np.array_equal, before, jax.tree.leaves(sv.load(tmp_path / name).loop)))
    with where.claimed(name) as claim:
        after = grow(claim, 3)
        local = {file.name for file in (after.folder.path / ROWS).iterdir()}
    found = sv.load(tmp_path / name)
    assert all(map(np.array_equal, *map(jax.tree.leaves, (found.loop, after.loop))))
    assert {file.name for file in (tmp_path / name / ROWS).iterdir()} == local
