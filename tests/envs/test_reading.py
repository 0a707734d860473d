"""What environments give, brought to the form that agents use."""

import numpy as np
import pytest
from gymnasium import spaces

from surveyor.envs.reading import Reader
from surveyor.errors import SurveyorError


def test_observations_are_read_by_their_space():
    box = Reader("x", spaces.Box(*np.array([[-1.2, -0.07], [0.6, 0.07]], np.float32)))
    np.testing.assert_allclose(box(np.array([0.6, -0.07])), [1.0, -1.0], atol=1e-5)
    assert Reader("x", spaces.Box(0, 255, (84, 84, 3), np.uint8)).dtype == "uint8"
    assert Reader("x", spaces.MultiBinary(5)).dtype == "bool"
    assert Reader("x", spaces.Discrete(7, start=2)).states == 7
    assert Reader("x", spaces.Discrete(7, start=2))(3) == 1
    with pytest.raises(SurveyorError, match="kind Dict; surveyor can use Box, Discrete"):
        Reader("x", spaces.Dict({"a": spaces.Discrete(2)}))
    grey = Reader("x", spaces.Box(0, 255, (84, 84), np.uint8))(np.full((84, 84), 255, np.uint8))
    assert grey.dtype == "float32"
    assert np.max(grey) == 1.0
    image = Reader("x", spaces.Box(0, 255, (20, 20, 3), np.float32))
    np.testing.assert_allclose(image(np.full((20, 20, 3), 51.0)), 0.2, rtol=1e-6)
    endless = Reader("x", spaces.Box(-np.inf, np.inf, (20, 20, 3), np.float32))
    np.testing.assert_allclose(endless(np.full((20, 20, 3), 7.0)), 7.0)
    assert Reader("x", spaces.Box(0, 1, (7, 7, 20), np.uint8)).dtype == "bool"
    few = Reader("x", spaces.Box(0, 10, (6,), np.uint8))(np.full(6, 10, np.uint8))
    np.testing.assert_array_equal(few, 1.0)  # not 10 of 255
    with pytest.raises(
        SurveyorError, match=r"shape \(3,\) where its observation space says \(2,\)"
    ):
        box(np.zeros(3))
