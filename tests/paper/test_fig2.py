"""Figure 2: its cells, its table and its picture."""

import re

import numpy as np

from surveyor import SU, SUPlus
from surveyor.paper import fig2
from tests.paper.common import outcome


def test_the_cells_are_those_of_the_paper():
    cells = fig2.cells(quick=False)
    sizes = {name: [c.size for c in cells if c.algorithm == name] for name in fig2.PANELS}
    assert sizes["SU (released)"] == sizes["SU+"] == list(range(10, 251, 10))
    assert sizes["SU (text)"] == [10, 50, 100, 150, 200, 250]
    assert all(cell.episodes == 5000 for cell in cells)
    assert {cell.algorithm for cell in cells if cell.seeds == 40} == {"BDQN", "UBE"}
    assert all(cell.seeds in (5, 40) for cell in cells)


def test_names_say_whose_settings_are_shown():
    agents = {cell.algorithm: cell.agent for cell in fig2.cells(quick=False)}
    assert agents["SU (released)"] == SU.preset("tree", "released")
    assert agents["SU (text)"] == SU.preset("tree", "text")
    assert agents["SU+"] == SUPlus.preset("tree")
    assert "SU" not in agents


def test_quick_has_every_panel():
    names = {cell.algorithm for cell in fig2.cells(quick=True)}
    assert set(fig2.PANELS) <= names


def test_success_rate_is_one_for_a_fair_coin():
    covered = 0
    for seed in range(40):
        first = [int(x) for x in np.random.default_rng(seed).geometric(2.0**-6, 100)]
        rate, low, high, found = fig2.success_rate([outcome(first, size=6)])
        assert found == 100
        assert low < rate < high
        covered += low < 1 < high
    assert covered >= 34  # of 40, where 38 are expected


def test_the_table_compares_the_released_code_only_with_itself(tmp_path, capsys):
    names = ("SU (released)", "SU (text)", "SU+")
    fig2.show([outcome([20, None, 30], 10, name) for name in names], tmp_path)
    said = capsys.readouterr()
    rows = {line.split(" | ")[0]: line for line in said.out.splitlines() if "2 of 3" in line}
    assert fig2.AUTHORS[10] in rows["| SU (released)"]
    assert fig2.AUTHORS[10] not in rows["| SU (text)"] + rows["| SU+"]
    assert "| 20, –, 30 | 30 |" in rows["| SU+"]
    assert "fig2.png" in said.err


def test_the_picture_has_a_panel_for_each_algorithm(tmp_path):
    outcomes = [outcome([20], 10, name) for name in fig2.PANELS]
    text = fig2.draw(outcomes, tmp_path / "fig2.svg").read_text("utf-8")
    drawn = re.findall("<text .*?>(.*?)</text>", text)
    assert [name for name in drawn if name in fig2.PANELS] == list(fig2.PANELS)
    assert "uniform exploration" in drawn
