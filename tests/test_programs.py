"""The cache of compiled programs: between processes, bounded, and nothing damaged is believed."""

import os
import subprocess
import sys

import pytest

from surveyor import _programs
from surveyor._programs import Programs

COUNTED = """
import sys
import surveyor
import jax
from jax import monitoring

events = []
monitoring.register_event_listener(lambda name, **_: events.append(name.rpartition("/")[2]))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(jax.jit(lambda x: (x @ x).sum())(jax.numpy.eye(5)).item(), end=" ")
print(events.count("cache_hits"), jax.config.jax_compilation_cache_dir)
"""


def run(cache, **more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "SURVEYOR_"))}
    given = {} if cache is None else {"SURVEYOR_CACHE": str(cache)}
    command = [sys.executable, "-c", COUNTED]
    done = subprocess.run(
        command, env=clean | given | more, capture_output=True, text=True, check=True
    )
    assert "Error" not in done.stderr
    value, hits, place = done.stdout.split()
    assert value == "5.0"
    return int(hits), place


def programs(cache):
    return sorted(cache.glob(f"*/*{_programs.SUFFIX}"))


def test_a_second_process_compiles_nothing(tmp_path):
    assert run(tmp_path)[0] == 0
    count = len(programs(tmp_path))
    hits, place = run(tmp_path)
    assert hits == count > 0
    assert place.startswith(str(tmp_path))


def test_a_damaged_program_is_compiled_again_and_replaced(tmp_path):
    run(tmp_path)
    for path in programs(tmp_path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1  # one bit, as a disk may do
        path.write_bytes(content)
    assert run(tmp_path)[0] == 0
    for path in programs(tmp_path):
        path.write_bytes(path.read_bytes()[:50])  # as a full disk leaves it
    assert run(tmp_path)[0] == 0
    assert run(tmp_path)[0] == len(programs(tmp_path))


def test_a_program_under_another_name_is_not_believed(tmp_path):
    cache = Programs(tmp_path)
    cache._path.mkdir()
    cache.put("one", b"program")
    assert cache.get("one") == b"program"
    programs(tmp_path)[0].rename(cache._path / f"two{_programs.SUFFIX}")
    assert cache.get("two") is None
    assert not programs(tmp_path)


@pytest.mark.parametrize("off", ["off", ""])
def test_it_can_be_switched_off(tmp_path, off):
    assert run(off, XDG_CACHE_HOME=str(tmp_path)) == (0, "None")
    assert not list(tmp_path.iterdir())


def test_it_is_in_the_users_cache_folder_unless_jax_has_a_cache(tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    assert run(None, XDG_CACHE_HOME=str(mine))[1].startswith(str(mine / "surveyor"))
    place = run(None, XDG_CACHE_HOME=str(mine), JAX_COMPILATION_CACHE_DIR=str(theirs))[1]
    assert place == str(theirs)


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file") == (0, "None")


def test_the_least_recently_used_programs_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(_programs, "EVERY", 1)
    cache = Programs(tmp_path, limit=250)
    cache._path.mkdir()
    for number, name in enumerate("abc"):
        cache.put(name, b"x" * 50)
        path = cache._path / (name + _programs.SUFFIX)
        os.utime(path, (number, number))
    assert cache.get("a") is not None  # it was used now
    other = tmp_path / "older-version"
    other.mkdir()
    (other / f"old{_programs.SUFFIX}").write_bytes(b"y" * 100)
    os.utime(other / f"old{_programs.SUFFIX}", (0, 0))
    cache.put("d", b"x" * 50)
    assert {path.stem for path in programs(tmp_path)} == {"a", "d", "c"}
    assert not list(tmp_path.glob("*/*.tmp"))


def test_processes_side_by_side_share_it(tmp_path):
    command = [sys.executable, "-c", COUNTED]
    env = os.environ | {"SURVEYOR_CACHE": str(tmp_path)}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    both = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    assert [one.communicate()[0].split()[0] for one in both] == ["5.0", "5.0"]
    assert run(tmp_path)[0] == len(programs(tmp_path))
