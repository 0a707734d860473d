"""What environments give, brought to the form that agents use."""

import math

import numpy as np
import pytest
from gymnasium import spaces

from surveyor.envs.reading import Reader, legal, sentences
from surveyor.errors import SurveyorError

ONE = spaces.Discrete(4)


def spec(space):
    return Reader("x", space).specify(ONE)


def test_observations_stay_as_they_are_and_bounds_say_how_to_scale_them():
    box = spec(spaces.Box(*np.array([[-1.2, -0.07], [0.6, 0.07]], np.float32)))
    assert (box.shape, box.dtype) == ((2,), "float32")
    np.testing.assert_allclose(box.bounds, [(-1.2, 0.6), (-0.07, 0.07)], rtol=1e-6)
    assert spec(spaces.MultiBinary(5)).dtype == "bool"
    assert spec(spaces.MultiBinary(5)).bounds == ()  # nothing to scale
    assert spec(spaces.Box(0, 1, (7, 7, 20), np.uint8)).dtype == "bool"
    assert spec(spaces.Box(-1, 1, (3,), np.float32)).bounds == ()
    endless = spec(spaces.Box(-np.inf, np.inf, (2,), np.float32))
    assert endless.bounds == ((-math.inf, math.inf),) * 2
    assert spec(spaces.Box(0, 1e9, (1,), np.float32)).bounds == ((-math.inf, math.inf),)
    assert spec(spaces.Box(0, 10, (6,), np.uint8)).bounds == ((0.0, 10.0),) * 6
    with pytest.raises(SurveyorError, match=r"shape \(3,\) where its observation space says \(2,"):
        Reader("x", spaces.Box(-1, 1, (2,)))(np.zeros(3))
    with pytest.raises(SurveyorError, match="x gave an observation that is not finite"):
        Reader("x", spaces.Box(-1, 1, (2,)))(np.array([0.0, np.nan]))


def test_images_are_of_three_axes_or_of_two_with_bytes():
    colour = spec(spaces.Box(0, 255, (84, 80, 3), np.uint8))
    assert (colour.picture, colour.dtype) == ((84, 80, 3), "uint8")
    assert colour.bounds == ((0.0, math.inf),) * 3  # 255 says nothing about what is in a byte
    grey = spec(spaces.Box(0, 255, (84, 80), np.uint8))
    assert (grey.picture, grey.bounds) == ((84, 80), ((0.0, math.inf),))
    assert spec(spaces.Box(0, 1, (28, 28), np.float32)).picture == (28, 28)
    assert spec(spaces.Box(-1, 1, (5, 5), np.float32)).picture == ()
    first = spec(
        spaces.Box(
            np.array([0, 0, 5], np.float32)[:, None, None] * np.ones((3, 9, 9), np.float32), 7.0
        )
    )
    assert first.bounds == ((0.0, 7.0), (0.0, 7.0), (5.0, 7.0))  # channels first


def test_numbered_states_are_numbers_also_beside_a_mask():
    read = Reader("x", spaces.Discrete(7, start=2))
    assert (read.states, int(read(3))) == (7, 1)
    masked = Reader(
        "x", spaces.Dict(observation=spaces.Discrete(5), action_mask=spaces.MultiBinary(4))
    )
    assert (masked.states, masked.specify(ONE).masked) == (5, True)
    assert masked({"observation": 3, "action_mask": np.ones(4)}) == 3
    assert masked.read_mask({"observation": 3, "action_mask": [1, 0, 1, 0]}, {}) == [1, 0, 1, 0]
    with pytest.raises(SurveyorError, match="x gave an observation without 'observation'"):
        masked({"action_mask": np.ones(4)})


def test_parts_are_laid_side_by_side_the_image_first():
    space = spaces.Dict(
        where=spaces.Box(-2, 2, (2,), np.float32),
        view=spaces.Box(0, 255, (7, 7, 3), np.uint8),
        more=spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiDiscrete([2, 4]))),
    )
    read = Reader("x", space)
    found = read.specify(ONE)
    assert (found.shape, found.image, found.dtype) == ((147 + 3 + 6 + 2,), (7, 7, 3), "float32")
    view = np.arange(147, dtype=np.uint8).reshape(7, 7, 3)
    seen = {"where": np.array([1.0, -2.0]), "view": view, "more": (2, np.array([1, 3]))}
    by_hand = [*range(147), 1.0, -2.0, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    np.testing.assert_array_equal(read(seen), by_hand)
    batch = {"where": np.zeros((2, 2)), "view": np.stack([view, view])}
    batch["more"] = (np.array([1, 3]), np.zeros((2, 2), int))
    assert read(batch).shape == (2, 158)
    assert read(batch)[1, 149:152].tolist() == [0, 0, 1]
    assert found.bounds[:3] == ((0.0, math.inf),) * 3
    assert found.bounds[3:5] == ((-2.0, 2.0),) * 2
    assert found.bounds[5:] == ((-1.0, 1.0),) * 9  # codes stay 0 and 1
    whole = spaces.Dict(view=space["view"], facing=spaces.Discrete(4))
    assert spec(whole).dtype == "uint8"  # a byte each in the replay


class Missions(spaces.Text):
    def __init__(self, *placeholders):
        super().__init__(20)
        self.ordered_placeholders = list(placeholders) or None
        self.mission_func = lambda *words: " ".join(("go", *words))


def test_text_is_coded_where_it_is_one_of_a_few_and_else_left_out_with_a_notice():
    number = spaces.Box(-1, 1, (1,))
    assert sentences(Missions(["to", "from"], ["me", "you"])) == [
        "go from me", "go from you", "go to me", "go to you"
    ]  # fmt: skip
    few = Reader("x", spaces.Dict(a=number, mission=Missions(["left", "right"])))
    np.testing.assert_array_equal(few({"a": [0.5], "mission": "go right"}), [0.5, 0, 1])
    assert spec(spaces.Dict(a=number, mission=Missions())).shape == (1,)  # always the same one
    with pytest.warns(UserWarning, match="Observations of x have text, which is left out: note"):
        read = Reader("x", spaces.Dict(a=number, note=spaces.Text(5)))
    assert read({"a": np.ones(1), "note": "hi"}).tolist() == [1.0]
    many = Missions(*[list("abcdef")] * 5)
    with pytest.warns(UserWarning, match="left out: mission"):
        Reader("x", spaces.Dict(a=number, mission=many))


def test_what_cannot_be_used_is_refused_in_a_sentence():
    graph = spaces.Graph(spaces.Discrete(3), None)
    with pytest.raises(SurveyorError, match="kind Graph; surveyor can use Box, Discrete"):
        Reader("x", graph)
    with pytest.raises(SurveyorError, match="x has observations of the kind Sequence"):
        Reader("x", spaces.Dict(a=spaces.Sequence(spaces.Discrete(3))))
    with pytest.raises(SurveyorError, match="x has no observations that are numbers"):
        Reader("x", spaces.Text(3))
    read = Reader("x", spaces.Box(-1, 1, (2,)))
    with pytest.raises(
        SurveyorError, match=r"has continuous actions, .* surveyor needs one discrete"
    ):
        read.specify(spaces.Box(-1, 1, (2,)))
    with pytest.raises(
        SurveyorError, match=r"several or other actions, MultiDiscrete\(\[2 2\]\); surv"
    ):
        read.specify(spaces.MultiDiscrete([2, 2]))
    both = Reader("x", spaces.Dict(a=spaces.Discrete(3), b=spaces.Discrete(2)))
    with pytest.raises(SurveyorError, match="x gave an observation outside of its space"):
        both({"a": 3, "b": 0})


def test_a_mask_allows_something_and_has_one_value_for_each_action():
    over = np.array([False, True])
    found = legal("x", [[1, 0, 0], [0, 0, 0]], 3, over)
    assert found.tolist() == [[True, False, False], [True] * 3]  # after the end it does not matter
    with pytest.raises(SurveyorError, match="The action_mask of x allows no action, so training"):
        legal("x", [[1, 0, 0], [0, 0, 0]], 3, np.zeros(2, bool))
    with pytest.raises(SurveyorError, match="one truth value for each of its 3 actions, not shape"):
        legal("x", [1, 0], 3, np.zeros((), bool))
    with pytest.raises(SurveyorError, match="one truth value for each of its 3 actions"):
        legal("x", None, 3, np.zeros((), bool))
