"""Checkpoint files; their use by runs is tested in test_folder.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.errors import SurveyorError
from surveyor.runs import checkpoint


def test_a_missing_run_folder_is_not_created(tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoint.save(tmp_path / "gone" / "checkpoint" / "state.npz", {"a": np.ones(2)}, {})
    assert list(tmp_path.iterdir()) == []


def test_arrays_come_back_as_numpy_or_jax_as_asked(tmp_path):
    tree = {"obs": np.arange(12.0).reshape(3, 4), "weights": jnp.arange(6.0).reshape(2, 3)}
    checkpoint.save(tmp_path / "c", tree, {"records": 3})
    like = {"obs": np.zeros((3, 4)), "weights": jax.ShapeDtypeStruct((2, 3), jnp.float32)}
    found, meta = checkpoint.load(tmp_path / "c", like)
    np.testing.assert_array_equal(found["obs"], tree["obs"])
    np.testing.assert_array_equal(found["weights"], tree["weights"])
    assert isinstance(found["obs"], np.ndarray)
    assert isinstance(found["weights"], jax.Array)
    found["obs"][0] = 1  # a runner writes into its arrays
    assert meta["records"] == 3
    assert checkpoint.read_meta(tmp_path / "c") == meta


@pytest.mark.parametrize(
    "like",
    [
        {"x": np.zeros((3, 4))},
        {"x": np.zeros(4)},
        {"x": np.zeros((4, 4), np.float32)},
        {"y": np.zeros((4, 4))},
        {"x": np.zeros((4, 4)), "y": np.zeros(1)},
    ],
)
def test_other_arrays_do_not_fit(tmp_path, like):
    checkpoint.save(tmp_path / "c", {"x": np.zeros((4, 4))}, {})
    with pytest.raises(SurveyorError, match=r"does not fit this run.*another version of surveyor"):
        checkpoint.load(tmp_path / "c", like)


@pytest.mark.parametrize("place", [300, 8000])
def test_a_flipped_bit_is_detected(tmp_path, place):
    tree = {"x": np.zeros((4, 1000), np.float32), "y": np.zeros(500)}
    checkpoint.save(tmp_path / "c", tree, {})
    content = bytearray((tmp_path / "c").read_bytes())
    content[place] ^= 1
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(SurveyorError, match="damaged"):
        checkpoint.load(tmp_path / "c", tree)


def test_there_is_no_metadata_without_a_checkpoint_or_in_a_damaged_one(tmp_path):
    assert checkpoint.read_meta(tmp_path / "c")["log"] is None
    (tmp_path / "c").write_bytes(b"PK")
    assert checkpoint.read_meta(tmp_path / "c")["log"] is None
