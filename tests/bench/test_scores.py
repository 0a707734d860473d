"""Scores, tables and pictures of the benchmarks, from runs that are made up."""

import json
import re

import pytest

from surveyor.bench import ablation, bsuite, classics, deepsea, minigrid, scores
from surveyor.bench.options import (
    AblationOptions,
    BsuiteOptions,
    ClassicsOptions,
    DeepSeaOptions,
    MiniGridOptions,
)
from surveyor.bench.scores import Task
from surveyor.errors import SurveyorError

TASKS = (
    Task("easy", "Lock-2", 100, worst=0.0, best=1.0, solved=0.9),
    Task("hard", "Lock-9", 100, worst=-200.0, best=-100.0, solved=-110.0),
)


def run(label, env, seed, means):
    evaluations = [[10 * (i + 1), mean] for i, mean in enumerate(means)]
    common = {"label": label, "env": env, "seed": seed, "seconds": 1.0, "counts": None}
    return {**common, "evaluations": evaluations, "sampled": [], "budget": 100}


ENTRIES = [
    *(run("SU+", "Lock-2", seed, [0.0, 1.0, 1.0, 1.0]) for seed in range(3)),
    *(run("SU+", "Lock-9", seed, [-200, -190, -190, -190]) for seed in range(3)),
    *(run("DQN", "Lock-2", seed, [0.0, 0.0, 0.3, 0.6]) for seed in range(3)),
    *(run("DQN", "Lock-9", seed, [-200, -100, -100, -100 - seed]) for seed in range(3)),
]


def test_a_score_is_the_share_of_the_best_in_the_last_three_evaluations():
    easy, easy_dqn, hard, hard_dqn = scores.collect(TASKS, ENTRIES)
    assert (easy.label, easy.scores, easy.solved_at) == ("SU+", [1.0] * 3, [20] * 3)
    assert easy_dqn.scores == pytest.approx([0.3] * 3)
    assert hard.scores == pytest.approx([0.1] * 3)
    assert hard_dqn.scores == pytest.approx([1.0, 1 - 1 / 300, 1 - 2 / 300])
    assert hard_dqn.solved_at == [20] * 3
    assert easy_dqn.solved_at == [None] * 3


def test_the_table_says_where_harm_is_done(tmp_path, capsys):
    scores.show("made", "Made up", TASKS, ENTRIES, tmp_path)
    said = capsys.readouterr().out
    assert "| easy | 1.00 (1.00; 3 of 3) | 0.30 (0.30; 0 of 3) |" in said
    assert "SU+ is below 0.8 of DQN's score on hard." in said
    data = json.loads((tmp_path / "made.json").read_text())
    assert set(data["iqm"]) == {"SU+", "DQN"}
    low, high = data["iqm"]["SU+"][1:]
    assert low <= data["iqm"]["SU+"][0] <= high
    assert (tmp_path / "made.png").stat().st_size > 10_000


def test_less_harm_than_dqn_is_none():
    bad = [run(label, "Lock-2", 0, [mean] * 4) for label, mean in (("SU+", -0.5), ("DQN", -0.6))]
    assert "nowhere below" in "".join(scores.harm(scores.collect(TASKS, bad)))
    worse = [run(label, "Lock-2", 0, [mean] * 4) for label, mean in (("SU+", 0.5), ("DQN", 0.7))]
    assert "below 0.8 of DQN's score on easy" in "".join(scores.harm(scores.collect(TASKS, worse)))


def test_agents_without_all_tasks_have_no_overall_score():
    results = scores.collect(TASKS, ENTRIES[:-3])
    assert scores.overall_score(results, "DQN") is None
    assert scores.overall_score(results, "SU+") is not None
    assert "below" not in "".join(scores.harm(scores.collect(TASKS, ENTRIES[:3])))


def test_minigrid_s_tasks_and_budgets_are_those_that_were_asked_for():
    trials = scores.trials(minigrid.TASKS, MiniGridOptions())
    assert len(trials) == 10 * 5 * 5
    budgets = {trial.config.env: trial.config.budget for trial in trials}
    assert budgets["MiniGrid-Empty-16x16-v0"] == 50_000
    assert budgets["MiniGrid-KeyCorridorS3R1-v0"] == 200_000
    assert {trial.config.protocol for trial in trials} == {"compiled"}
    one = scores.trials(
        minigrid.TASKS, MiniGridOptions(tasks=("Unlock",), agents=("dqn",), seeds=2)
    )
    assert [trial.config.seed for trial in one] == [0, 1]


def test_an_ablation_takes_one_part_away_where_it_makes_a_difference():
    found = scores.trials(
        ablation.TASKS, AblationOptions(seeds=1), ablation.LABELS, ablation.agent_of
    )
    by = {(trial.label, trial.config.env): trial.config.agent for trial in found}
    envs = [task.env for task in ablation.TASKS]
    assert len(envs) == 5
    whole = {env: by["SU+", env] for env in envs}
    for (label, env), agent in by.items():
        assert (agent == whole[env]) == (label == "SU+")
    assert {env for label, env in by if label == "table does not settle"} == {"FrozenLake-8x8"}
    assert "FrozenLake-8x8" not in {env for label, env in by if label == "no contrast"}
    assert len({label for label, _ in by}) == len(ablation.VARIANTS)


def test_more_agents_than_colours_are_drawn(tmp_path):
    many = [run(f"agent {i}", "Lock-2", 0, [0.0, 1.0, 1.0, 1.0]) for i in range(12)]
    scores.show("made", "Made up", TASKS, many, tmp_path)
    assert (tmp_path / "made.png").stat().st_size > 10_000


def test_classics_name_a_best_return_for_each_task():
    trials = scores.trials(classics.TASKS, ClassicsOptions(quick=True))
    assert {trial.config.budget for trial in trials} == {5_000}
    for task in classics.TASKS:
        assert task.worst < task.solved <= task.best
    with pytest.raises(SurveyorError, match="did you mean 'Acrobot'"):
        scores.trials(classics.TASKS, ClassicsOptions(tasks=("Acrobat",)))


def test_deepsea_counts_episodes_by_both_criteria(tmp_path, capsys):
    def entry(label, seed, sampled, greedy):
        of = lambda means: [[20 * 10 * (i + 1), mean] for i, mean in enumerate(means)]  # noqa: E731
        common = {"label": label, "env": "DeepSea-10", "seed": seed, "seconds": 2.0}
        return {**common, "budget": 6_000, "sampled": of(sampled), "evaluations": of(greedy)}

    entries = [
        entry("SU+", 0, [0.1, 0.99, 0.4], [0.99, 0.99, 0.99]),
        entry("SU+", 1, [0.1, 0.1, 0.985], [0.0, 0.99, 0.99]),
        entry("DQN", 0, [], [0.0, 0.0, 0.0]),
    ]
    plus, dqn = deepsea.collect(entries)
    assert (plus.field, plus.greedy) == ([40, 60], [20, None])
    assert (dqn.field, dqn.greedy) == ([None], [None])
    deepsea.show(entries, tmp_path)
    said = capsys.readouterr().out
    assert "| 10 | SU+ | 50 (2 of 2) | 40–60 | " in said
    assert "| 10 | DQN | – (0 of 1) | – | " in said


def test_the_field_s_numbers_are_shown_beside_ours():
    agents = {trial.label: trial.config.agent for trial in deepsea.trials(DeepSeaOptions())}
    assert agents["HyperAgent"].target == "independent"
    assert agents["HyperAgent, optimistic"].target == "optimistic"
    for agent in agents.values():
        assert (agent.batch_size, agent.train_every, agent.gradient_steps) == (128, 1, 1)
    sizes = {trial.config.env for trial in deepsea.trials(DeepSeaOptions(full=True))}
    assert "DeepSea-100" in sizes
    point = deepsea.Point("HyperAgent", 30, [1], [1], 0.0, 1)
    assert point.published == 953


def swing(total, best, episodes=1_000):
    counts = {"episodes": episodes, "bad": 0, "total": total, "best": best, "solved_at": 0}
    return {"label": "SU+", "env": "bsuite/cartpole_swingup/3", "counts": counts}


def sea(setting, solved_at):
    counts = {"episodes": 1, "bad": 0, "total": 0.0, "best": 0.0, "solved_at": solved_at}
    return {"label": "SU+", "env": f"bsuite/deep_sea/{setting}", "counts": counts}


def test_scores_are_bsuite_s(tmp_path, capsys):
    assert bsuite.score(swing(0.0, 0.0)) == 0
    assert bsuite.score(swing(350_000.0, 500.0)) == pytest.approx(0.75)
    assert bsuite.score(swing(-9_000.0, 101.0)) == 0.5  # regret is clipped
    assert [bsuite.score(sea(0, at)) for at in (0, 1, 1_123, 1_124)] == [0, 1, 1, 0]
    assert bsuite.score(sea(20, 10_000)) == 1  # size 50
    bsuite.show([swing(350_000.0, 500.0), sea(0, 200), sea(1, 0)], tmp_path)
    said = capsys.readouterr().out
    assert "| SU+ | 0.50 (2) | 0.75 (1) |" in said
    assert re.search(r"Bootstrapped DQN, published \| 1.00 \| 0.15", said)
    assert (tmp_path / "bsuite.png").exists()


def test_bsuite_has_all_settings():
    trials = bsuite.trials(BsuiteOptions(agents=("dqn",)))
    assert len(trials) == 21 + 21 + 20
    budgets = {trial.config.env: trial.config.budget for trial in trials}
    assert budgets["bsuite/deep_sea_stochastic/20"] == 10_000 * 50
    assert budgets["bsuite/cartpole_swingup/0"] == 1_000_000
