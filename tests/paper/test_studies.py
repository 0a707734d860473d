"""Studies of many runs: trained once, found again, summarised."""

import pytest

from surveyor import PSRL, SurveyorError
from surveyor.paper import fig2, studies
from surveyor.paper.studies import Cell, select
from tests.paper.common import outcome


@pytest.mark.slow
def test_a_cell_is_trained_once_and_found_again(tmp_path, monkeypatch):
    cell = Cell("PSRL", "Tree-4", PSRL.preset("tree"), seeds=2, episodes=200)
    first = studies.train_cells([cell], tmp_path)[0]
    assert first.solved == 2
    monkeypatch.setattr(studies, "_train", None)  # would fail if anything were trained again
    again = studies.train_cells([cell], tmp_path)[0]
    assert again.runs == first.runs


def test_the_median_counts_unsolved_runs_as_later_than_all_others():
    assert outcome([10, 30, 20]).median == 20
    assert outcome([10, None, 20]).median == 20
    assert outcome([10, None, None]).median is None
    assert outcome([10, None, None]).solved == 1


def test_rows_show_every_seed():
    row = dict(zip(studies.HEADER, outcome([30, None, 20]).cells, strict=True))
    assert row["solved at (by seed)"] == "30, –, 20"
    assert row["solved"] == "2 of 3"
    assert row["median episodes"] == "30"
    assert outcome([30, None, 20]).costs == ["10", "1.0"]


def test_outcomes_of_an_algorithm_are_in_the_order_of_size():
    mixed = [outcome([9], 40), outcome([8], 20), outcome([7], 30, "SU+"), outcome([None], 10)]
    assert [o.size for o in studies.of(mixed, "SU (released)")] == [10, 20, 40]
    sizes, times = studies.medians(mixed, "SU (released)")
    assert (list(sizes), list(times)) == ([20, 40], [8, 9])


def test_a_figure_can_be_drawn_of_some_algorithms():
    cells = fig2.cells(quick=True)
    assert select(cells, ()) == cells
    assert {cell.algorithm for cell in select(cells, ("SU+", "PSRL"))} == {"SU+", "PSRL"}
    with pytest.raises(SurveyorError, match=r"'SU'; there is: SU \(released\), SU\+"):
        select(cells, ("SU",))
