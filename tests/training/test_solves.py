"""The headline: the presets solve the paper's problems."""

import dataclasses

import pytest

import surveyor as sv


@pytest.mark.parametrize(
    ("env", "limit"),
    [("Tree-2", 40), ("Tree-100", 250), ("Chain-20", 250)],
)
def test_presets_solve_them_and_settle_at_once(env, limit):
    for seed in range(2):
        run = sv.train("su", env, seed=seed, episodes=2000)
        assert run.solved_at is not None
        assert run.solved_at <= limit
        assert run.solved_at - run.first_success < 100


def test_the_paper_s_tree_values_work_on_a_small_tree():
    """θ = 1e4 and β = 1e-3 make a condition number of 1e11: only a sound posterior explores."""
    agent = dataclasses.replace(sv.SU.tree(), theta=1e4, beta=1e-3)
    for seed in range(5):
        run = sv.train(agent, "Tree-10", seed=seed, episodes=400)
        assert run.solved_at is not None
        assert run.solved_at <= 300


def test_tied_actions_are_solved_too():
    assert sv.train("su", "TiedTree-30").solved_at is not None


@pytest.mark.slow
@pytest.mark.parametrize(("env", "median"), [("Tree-250", 770), ("Chain-40", 1135)])
def test_the_large_problems(env, median):
    solved = sorted(sv.train("su", env, seed=seed).solved_at or 10**9 for seed in range(5))
    assert solved[2] <= median
    assert solved[-1] < 5000
