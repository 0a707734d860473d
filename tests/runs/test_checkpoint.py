"""Checkpoint files; their use by runs is tested in test_folder.py."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.errors import SurveyorError
from surveyor.runs import checkpoint


def blank(rows):
    return {
        "replay": np.zeros((rows, 1000), np.float32),
        "next": np.zeros((), np.int64),
        "weights": jnp.zeros((2, 3)),
    }


def test_a_missing_run_folder_is_not_created(tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoint.save(tmp_path / "gone" / "checkpoint" / "state.npz", {"a": np.ones(2)}, {})
    assert list(tmp_path.iterdir()) == []


def test_saved_rows_are_restored_and_other_rows_unchanged(tmp_path):
    tree = {
        "replay": np.random.default_rng(0).random((5, 1000), np.float32),
        "next": np.array(5),
        "weights": jnp.arange(6.0).reshape(2, 3),
    }
    checkpoint.save(tmp_path / "c", tree, {"records": 3})
    found, meta = checkpoint.load(tmp_path / "c", blank(8))
    np.testing.assert_array_equal(found["replay"][:5], tree["replay"])
    np.testing.assert_array_equal(found["replay"][5:], 0)
    np.testing.assert_array_equal(found["weights"], tree["weights"])
    assert found["next"] == 5
    assert meta["records"] == 3


def test_part_of_a_replay_is_read_only_on_request(tmp_path):
    full = blank(6)
    full["replay"] += np.arange(6, dtype=np.float32)[:, None]
    checkpoint.save(tmp_path / "c", full, {})
    found, _ = checkpoint.load(tmp_path / "c", blank(2), part=True)
    np.testing.assert_array_equal(found["replay"], full["replay"][:2])
    with pytest.raises(SurveyorError, match="does not fit"):
        checkpoint.load(tmp_path / "c", blank(2))


def test_reading_a_replay_allocates_no_second_copy(tmp_path):
    full = blank(16_000)  # 64 MB
    full["replay"] += 1
    checkpoint.save(tmp_path / "c", full, {})
    like = blank(16_000)
    tracemalloc.start()
    try:
        found, _ = checkpoint.load(tmp_path / "c", like)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found["replay"] is like["replay"]
    assert np.all(found["replay"] == 1)
    assert peak < 8e6


@pytest.mark.parametrize("rows", [4, 8])
def test_a_flipped_bit_in_a_replay_is_detected(tmp_path, rows):
    checkpoint.save(tmp_path / "c", blank(4), {})
    content = bytearray((tmp_path / "c").read_bytes())
    content[8000] ^= 1
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(SurveyorError, match="damaged"):
        checkpoint.load(tmp_path / "c", blank(rows))
