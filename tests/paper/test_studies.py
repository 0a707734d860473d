"""Studies of many runs: trained once, found again, resumed, ranked."""

import json
import math

import numpy as np
import pytest

from surveyor.agents import PSRL
from surveyor.cli import main
from surveyor.paper import fig2, fig3, studies, tables
from surveyor.paper.studies import Cell, Outcome


def outcome(solved, size=10, name="SU", first=None):
    runs = [
        {"solved_at": s, "first_success": f, "episodes": 100, "gradient_steps": 10, "seconds": 1.0}
        for s, f in zip(solved, first or solved, strict=True)
    ]
    return Outcome(name, f"Tree-{size}", size, 100, runs)


@pytest.mark.slow
def test_a_cell_is_trained_once_and_found_again(tmp_path, monkeypatch):
    cell = Cell("PSRL", "Tree-4", PSRL.deterministic(), seeds=2, episodes=200)
    first = studies.carry_out([cell], tmp_path)[0]
    assert first.solved == 2
    monkeypatch.setattr(studies, "_train", None)  # would fail if anything were trained again
    again = studies.carry_out([cell], tmp_path)[0]
    assert again.runs == [{k: v for k, v in run.items() if k != "finished"} for run in first.runs]


def test_the_median_counts_unsolved_runs_as_later_than_all_others():
    assert outcome([10, 30, 20]).median == 20
    assert outcome([10, None, 20]).median == 20
    assert outcome([10, None, None]).median is None
    assert outcome([10, None, None]).solved == 1


def test_success_rate_is_one_for_a_fair_coin():
    covered = 0
    for seed in range(40):
        first = [int(x) for x in np.random.default_rng(seed).geometric(2.0**-6, 100)]
        rate, low, high, found = fig2.success_rate([outcome(first, size=6)])
        assert found == 100
        assert low < rate < high
        covered += low < 1 < high
    assert covered >= 34  # of 40, where 38 are expected


def test_slopes_are_fitted_in_log_log():
    outcomes = [outcome([2 * size**3] * 3, size, "SU") for size in (20, 40, 80)]
    slope, intercept = fig3.slope(outcomes, "SU")
    assert slope == pytest.approx(3.0)
    assert 10**intercept == pytest.approx(2.0)
    assert fig3.slope(outcomes, "PSRL") is None
    assert fig3.paper_line(40) == pytest.approx(1135, abs=1)


def test_the_figures_ask_for_what_the_paper_shows():
    cells = fig2.cells(quick=False)
    sizes = {cell.size for cell in cells if cell.algorithm == "SU"}
    assert sizes == set(range(10, 251, 10))
    assert all(cell.episodes == 5000 for cell in cells)
    assert {cell.algorithm for cell in cells if cell.seeds == 40} == {"BDQN", "UBE"}
    assert all(cell.seeds in (5, 40) for cell in cells)
    chain = [cell.size for cell in fig3.cells(quick=False, beyond=True) if cell.algorithm == "SU"]
    assert chain == [20, 40, 60, 80, 100, 120, 140, 160, 200, 240]


def test_the_grids_are_those_of_tables_2_and_3():
    su, one, many = tables.SEARCHES["tree"]
    assert len(su.cells("text", seeds=1, episodes=1, thin=False)) == 2 * 3 * 3
    assert len(one.cells("ours", seeds=1, episodes=1, thin=False)) == 2 * 3 * 5 * 4
    assert many.bases["ours"].gradient_steps == 250
    assert len(many.cells("ours", seeds=1, episodes=1, thin=True)) == 1 * 2 * 2 * 2
    (chain,) = tables.SEARCHES["chain"]
    assert math.prod(len(values) for values in chain.grid.values()) == 27


def test_table_and_bad_input_on_the_command_line(tmp_path, capsys):
    assert main(["paper", "table", "--out", str(tmp_path)]) == 0
    assert "| 2 (tree) | SU | theta | {1, 100, 10000} | 10000 | 1 |" in capsys.readouterr().out
    assert json.loads((tmp_path / "tables.json").read_text())
    assert main(["paper", "fig22"]) == 2
    assert "fig2" in capsys.readouterr().err
    assert main(["paper"]) == 2
    assert main(["paper", "--help"]) == 0
    (tmp_path / "file").write_text("")
    assert main(["paper", "table", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
