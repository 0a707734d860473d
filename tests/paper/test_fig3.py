"""Figure 3: its cells, its slopes, its table and its picture."""

import re

import pytest

from surveyor import SU, SUPlus
from surveyor.paper import fig3
from tests.paper.common import outcome


def cubic(name, sizes=(20, 40, 80)):
    return [outcome([2 * size**3] * 3, size, name, kind="Chain") for size in sizes]


def test_the_cells_are_those_of_the_paper_and_beyond():
    cells = fig3.cells(quick=False, beyond=True)
    sizes = {name: [c.size for c in cells if c.algorithm == name] for name in fig3.LINES}
    assert sizes["SU (released)"] == [20, 40, 60, 80, 100, 120, 140, 160]
    assert sizes["SU+"] == [*sizes["SU (released)"], 200, 240]
    inside = fig3.cells(quick=False, beyond=False)
    assert max(cell.size for cell in inside) == 160
    assert {cell.algorithm for cell in fig3.cells(quick=True, beyond=True)} == set(fig3.LINES)


def test_names_say_whose_settings_are_shown():
    agents = {cell.algorithm: cell.agent for cell in fig3.cells(quick=False, beyond=True)}
    assert agents["SU (released)"] == SU.preset("chain", "released")
    assert agents["SU (text)"] == SU.preset("chain", "text")
    assert agents["SU+"] == SUPlus.preset("chain")


def test_slopes_are_fitted_in_log_log_to_three_sizes_or_more():
    slope, intercept = fig3.slope(cubic("SU+"), "SU+")
    assert slope == pytest.approx(3.0)
    assert 10**intercept == pytest.approx(2.0)
    assert fig3.slope(cubic("SU+"), "PSRL") is None
    assert fig3.slope(cubic("SU+", (20, 40, 200)), "SU+") is None
    assert fig3.paper_line(40) == pytest.approx(1135, abs=1)


def test_the_table_has_the_paper_s_line_beside_all_of_su(tmp_path, capsys):
    names = ("SU (released)", "SU (text)", "SU+", "PSRL")
    fig3.show([o for name in names for o in cubic(name)], tmp_path)
    text = capsys.readouterr().out
    assert text.count("| 16000, 16000, 16000 | 16000 | 201 |") == 3
    assert "| PSRL | 20 | 3 of 3 | 16000, 16000, 16000 | 16000 |  |" in text
    assert text.count(": log10 T = 3.00 log10 L +0.30 (L ≤ 160).") == 4
    assert "Paper, SU: log10 T = 2.5 log10 L -0.95." in text


def test_the_picture_names_all_lines_and_unsolved_algorithms(tmp_path):
    outcomes = [*cubic("SU (released)"), outcome([None, None], 20, "SU (text)", kind="Chain")]
    fits = {name: fig3.slope(outcomes, name) for name in fig3.LINES}
    text = fig3.draw(outcomes, fits, tmp_path / "fig3.svg").read_text("utf-8")
    drawn = re.findall("<text .*?>(.*?)</text>", text)
    assert "SU (released): slope 3.00" in drawn
    assert "SU (text): unsolved, at the budget" in drawn
    assert "paper, SU: slope 2.5" in drawn
    assert not any(name.startswith(("PSRL", "SU+")) for name in drawn)
