"""Tables 2 and 3, and the searches behind them."""

import json
import math

import pytest

from surveyor.cli import main
from surveyor.paper import tables
from surveyor.paper.options import GridSearchOptions
from tests.paper.common import outcome


def test_the_grids_are_those_of_the_paper():
    su, one, many = tables.SEARCHES["tree"]
    assert len(su.cells("text", seeds=1, episodes=1, thin=False)) == 2 * 3 * 3
    assert len(one.cells("text", seeds=1, episodes=1, thin=False)) == 2 * 3 * 5 * 4
    cells = many.cells("released", seeds=1, episodes=1, thin=True)
    assert len(cells) == 1 * 2 * 2 * 2
    assert {cell.agent.gradient_steps for cell in cells.values()} == {250}
    (chain,) = tables.SEARCHES["chain"]
    assert math.prod(len(values) for values in chain.grid.values()) == 27


@pytest.mark.parametrize("source", tables.LABELS)
def test_a_search_starts_from_its_source_and_says_so(source):
    (search,) = tables.SEARCHES["chain"]
    for (steps, theta, beta), cell in search.cells(source, seeds=1, episodes=1, thin=True).items():
        assert cell.algorithm == tables.LABELS[source]
        assert (cell.agent.gradient_steps, cell.agent.theta) == (steps, theta)
        assert cell.agent.beta == beta
    policies = {"released": "marginal", "text": "joint"}
    assert cell.agent.policy == policies[source]


def test_the_paper_s_values_are_beside_all_presets(tmp_path, capsys):
    assert main(["paper", "table", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "| paper's value | SU (released) | SU (text) |" in text
    assert "| 2 (tree) | SU | theta | {1, 100, 10000} | 10000 | 1e-06 | 10000 |" in text
    assert "| 3 (chain) | SU | beta | {0.001, 0.01, 0.1} | 0.01 | 1 | 0.01 |" in text
    assert "| 2 (tree) | B+P 25x | prior_weight | {0, 0.1, 1, 10} | 0 | 0 | 10 |" in text
    assert json.loads((tmp_path / "tables.json").read_text())[1]["SU (text)"] == "10000"
    (tmp_path / "file").write_text("")
    assert main(["paper", "table", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_the_winner_has_most_seeds_solved_then_the_smallest_median(tmp_path, capsys, monkeypatch):
    def train(cells, out):
        by_beta = {1e-3: [None, 10], 1e-1: [40, 50]}
        return [outcome(by_beta[c.agent.beta], 20, c.algorithm) for c in cells]

    monkeypatch.setattr(tables, "train_cells", train)
    tables.gridsearch(GridSearchOptions(quick=True, out=tmp_path, problem="chain", seeds=2))
    text = capsys.readouterr().out
    assert "## SU (released) on Chain-20, 2 seeds" in text
    assert "Winner here: gradient_steps 10, theta 1, beta 0.1." in text
    assert "The paper's: gradient_steps 40, theta 1, beta 0.01." in text


def test_a_column_that_the_problem_does_not_have_is_refused(tmp_path, capsys):
    words = ["gridsearch", "chain", "--algorithm", "B+P 1x", "--out", str(tmp_path)]
    assert main(["paper", *words]) == 2
    assert "There is no search of B+P 1x on the chain." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_no_seeds_are_refused(capsys):
    assert main(["paper", "gridsearch", "--seeds", "0"]) == 2
    assert "seeds must be at least 1, not 0." in capsys.readouterr().err
