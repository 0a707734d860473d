"""Replay strategies: from text to draws, and the runs that they are for."""

import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.errors import SurveyorError
from surveyor.replay import strategies as registry
from surveyor.replay.episodes import EpisodeReplay
from surveyor.replay.steps import StepReplay
from surveyor.replay.strategies import Prioritised, RecentAndBest, Replay, Strategy, Uniform
from surveyor.types import EnvSpec, Schedule


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform", Uniform()),
        ("prioritised", Prioritised(0.6)),
        ("prioritised(0.5)", Prioritised(0.5)),
        (" prioritised ( 1 ) ", Prioritised(1.0)),
        ("recent-and-best(10, 20)", RecentAndBest(10, 20)),
        ("recent-and-best(30)", RecentAndBest(30, 0)),
    ],
)
def test_a_strategy_is_named_by_text(text, expected):
    assert registry.strategy(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prioritized", "There is no replay strategy 'prioritized'; did you mean 'prioritised'?"),
        ("", "A replay strategy is a name such as prioritised(0.6), not ''."),
        ("uniform(", "A replay strategy is a name such as prioritised(0.6), not 'uniform('."),
        ("uniform(1)", "'uniform(1)' has numbers that the strategy uniform does not take."),
        ("prioritised(a)", "'prioritised(a)' has numbers that the strategy prioritised does"),
        ("recent-and-best(1.5)", "'recent-and-best(1.5)' has numbers that the strategy"),
        ("recent-and-best(1, 2, 3)", "'recent-and-best(1, 2, 3)' has numbers that the strategy"),
    ],
)
def test_text_that_names_none_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(SurveyorError) as error:
        registry.strategy(text)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        (Prioritised(0.0), "α of prioritised(α) must be above 0, not 0."),
        (Prioritised(-1.0), "α of prioritised(α) must be above 0, not -1."),
        (RecentAndBest(-1, 0), "RECENT and BEST of recent-and-best must be at least 0, together"),
        (RecentAndBest(60, 50), "at most batch_size = 100, not 60 and 50."),
    ],
)
def test_numbers_that_no_batch_can_have_are_refused(strategy, sentence):
    with pytest.raises(SurveyorError) as error:
        strategy.check(100)
    assert sentence in str(error.value)
    RecentAndBest(50, 50).check(100)


@pytest.mark.parametrize(
    ("text", "other"), [("prioritised(0.6)", "episodes"), ("recent-and-best(10, 20)", "steps")]
)
def test_a_strategy_for_other_runs_is_refused_in_one_sentence(text, other):
    scope = {"episodes": "steps", "steps": "episodes"}[other]
    with pytest.raises(SurveyorError) as error:
        registry.fitting(text, other)
    assert str(error.value) == (
        f"The replay strategy {text} is for environments that are learnt by {scope}."
    )
    assert registry.fitting(text, scope) == registry.strategy(text)
    assert registry.fitting("uniform", other) == Uniform()


def test_priorities_are_powers_of_errors_and_never_zero():
    errors = np.float32([0.0, -0.999, 3.999])
    np.testing.assert_allclose(
        Prioritised(0.5).priorities(errors), [0.001**0.5, 1.0, 2.0], rtol=1e-4
    )


class Pretended:
    """A replay of transitions 0 to 9, the newest episode 8 and 9, the best 2 and 3."""

    capacity = 10

    def uniform(self, u):
        return (u * 10).astype(jnp.int32)

    def newest_episode(self, u):
        return 8 + (u * 2).astype(jnp.int32)

    def best_episode(self, u):
        step = (u * 2).astype(jnp.int32)
        return 2 + step, 100 + step


def test_a_batch_is_the_recent_then_the_best_then_all_others():
    u = jnp.array([0.0, 0.9, 0.0, 0.9, 0.0, 0.45, 0.9])
    drawn = RecentAndBest(2, 2).draw(Pretended(), u)
    np.testing.assert_array_equal(drawn.number, [8, 9, 2, 3, 0, 4, 9])
    np.testing.assert_array_equal(drawn.row, [8, 9, 100, 101, 0, 4, 9])
    assert RecentAndBest(2, 0).draw(Pretended(), u).row is None  # a row follows from its number


def test_both_storages_follow_the_protocol_and_every_strategy_is_registered():
    replays = (
        EpisodeReplay.create(4, 2, Uniform()),
        StepReplay.create(EnvSpec(0, 2, 0, (2,), "float32"), Schedule(capacity=4)),
    )
    assert all(isinstance(replay, Replay) for replay in replays)
    assert set(registry.STRATEGIES.values()) == set(Strategy.__subclasses__())
