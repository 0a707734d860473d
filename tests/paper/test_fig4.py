"""Figure 4 from the paper's published scores."""

import json

import pytest

from surveyor.cli import main
from surveyor.paper import fig4
from surveyor.paper.atari_scores import Column, published


def test_wins_are_those_of_the_caption(tmp_path):
    columns = published()
    found = {name: fig4.wins(columns["su"], columns[name]) for name in ("bootdqn", "ube")}
    assert found == {"bootdqn": (36, 0, 13), "ube": (43, 0, 6)}
    assert fig4.wins(columns["su"], columns["dqn"]) == (41, 1, 7)
    assert main(["paper", "fig4", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "fig4.png").stat().st_size > 10_000
    data = json.loads((tmp_path / "fig4.json").read_text())
    gaps = fig4.differences(columns["su"], columns["dqn"], "paper")
    assert data["dqn"] == {game: value for game, (value, _, _) in gaps.items()}
    assert sum(value > 0 for value in data["dqn"].values()) == 41


def test_differences_have_intervals_where_a_column_has_seeds():
    ours = Column("a", {"boxing": [10.0, 30.0], "pong": [1.0]})
    theirs = Column("b", {"boxing": [5.0], "alien": [3.0]})
    ((game, (value, low, high)),) = fig4.differences(ours, theirs, "paper").items()
    assert game == "boxing"
    assert value == pytest.approx((20.0 - 5.0) / (4.3 - 0.1))
    assert low < value < high
