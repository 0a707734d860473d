"""DeepSea with pictures, with bsuite's as the oracle."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite.environments import deep_sea as bsuite

import surveyor as sv
from surveyor.envs import families
from surveyor.envs.functional import coloured
from surveyor.envs.sea import DeepSea, Place
from surveyor.errors import SurveyorError
from surveyor.runs import api
from surveyor.training import functional

KEY = jax.random.key(0)


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("seed", [0, 17])
def test_step_by_step_the_same_as_bsuite(size, seed):
    env = families.find(f"DeepSea-{size}").make(f"DeepSea-{size}", None).seeded(seed)
    oracle = bsuite.DeepSea(size, mapping_seed=seed)
    step, rng = eqx.filter_jit(env.step), np.random.default_rng(seed)
    for episode in range(12):
        expected = oracle.reset()
        obs, state = env.reset(KEY)
        for row in range(size):
            np.testing.assert_array_equal(obs, expected.observation)
            column = int(np.argmax(expected.observation[row]))
            good = int(oracle._action_mapping[row, column])
            action = good if episode % 3 == 0 else int(rng.integers(2))
            expected = oracle.step(action)
            obs, state, reward, over, truncated, final = step(KEY, state, jnp.int32(action))
            assert obs.dtype == final.dtype == bool
            assert float(reward) == pytest.approx(expected.reward, abs=1e-7)
            assert bool(over) == expected.last()
            assert not truncated
            np.testing.assert_array_equal(final, expected.observation)
        assert not np.any(final)
        np.testing.assert_array_equal(obs, oracle.reset().observation)  # the next episode's first


class Forced:
    """Random numbers that were drawn before."""

    def __init__(self, u, noise):
        self.rand, self.randn = (lambda: u), (lambda: noise)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_stochastic_version_follows_bsuite_given_its_random_numbers(size):
    env = DeepSea(size, stochastic=True)
    params, rng = env.seeded_params(3), np.random.default_rng(0)
    oracle = bsuite.DeepSea(size, deterministic=False, mapping_seed=3)
    move, slips, noisy = jax.jit(env.move), 0, 0
    for _ in range(40):
        oracle.reset()
        place = Place(jnp.int32(0), jnp.int32(0))
        for row in range(size):
            good = int(oracle._action_mapping[row, oracle._column])
            action = good if rng.random() < 0.8 else 1 - good
            u, noise = np.float32(rng.random()), np.float32(rng.normal())
            oracle._rng = Forced(u, noise)
            before = int(place.column)
            expected = oracle.step(action)
            place, reward = move(
                place, jnp.int32(action), params, jnp.asarray(u), jnp.asarray(noise)
            )
            np.testing.assert_array_equal(env.observe(place), expected.observation)
            assert (int(place.row), int(place.column)) == (oracle._row, oracle._column)
            assert float(reward) == pytest.approx(expected.reward, abs=1e-6)
            slips += action == good and int(place.column) == before < size - 1
            noisy += abs(float(reward)) > 0.02
    assert noisy > 5
    assert slips > 5 or size == 1


def test_the_stochastic_version_draws_as_often_as_bsuite_does():
    env, size = DeepSea(4, stochastic=True), 4
    params = env.seeded_params(0)

    def episode(key):
        def body(carry, key):
            state, total = carry
            action = params.mapping[state.row, state.column].astype(jnp.int32)
            _, state, reward, *_ = env.step(key, state, action, params)
            return (state, total + reward), reward

        (_, total), rewards = jax.lax.scan(
            body, (env.reset(key, params)[1], 0.0), jax.random.split(key, size)
        )
        return total, rewards[-1]

    totals, last = jax.jit(jax.vmap(episode))(jax.random.split(KEY, 4000))
    assert float(jnp.mean(totals)) == pytest.approx(env.optimal_return, abs=0.06)
    # Beside the cost, the last reward is 1 + noise after three moves, noise alone after none.
    right, never = 0.75**3, 0.25**3
    assert float(jnp.var(last)) == pytest.approx(right * (2 - right) + never, abs=0.06)
    assert env.optimal_return == bsuite.DeepSea(4, deterministic=False)._optimal_return


def test_names_budgets_and_reference_scores():
    family = families.find("DeepSea-20")
    assert (family.name, family.size("DeepSea-20-stochastic")) == ("DeepSea", 20)
    assert family.reference("DeepSea-20") == (0.0, 0.99)
    assert family.default_budget("DeepSea-20") == 200_000
    assert family.canonical("DeepSea-07") == "DeepSea-7"
    assert family.canonical("DeepSea-07-stochastic") == "DeepSea-7-stochastic"


@pytest.mark.parametrize(
    "name", ["DeepSea", "DeepSea-0", "DeepSea-x", "DeepSea-9999", "DeepSea-4-wild"]
)
def test_a_bad_size_is_answered_in_one_sentence(name):
    with pytest.raises(SurveyorError, match="must be a whole number from 1 to 1,000"):
        families.find(name).canonical(name)


def test_a_misspelt_name_gets_a_hint():
    with pytest.raises(SurveyorError, match="did you mean 'DeepSea-10'"):
        families.find("deepsea-10").canonical("deepsea-10")


def test_seeds_have_mappings_of_their_own_and_share_one_program(tmp_path):
    functional._programs.clear()
    runs = [sv.train("uniform", "DeepSea-4", seed=seed, steps=64, out=tmp_path) for seed in (0, 1)]
    for seed, run in enumerate(runs):
        mapping = bsuite.DeepSea(4, mapping_seed=seed)._action_mapping
        np.testing.assert_array_equal(run.runner.env.params.mapping, mapping)
        replay = run.loop.replay
        batch = replay.sample(jnp.linspace(0, 0.99, 200))
        row, column = np.nonzero(np.asarray(batch.obs))[1:]
        costs = np.asarray(batch.action) == mapping[row, column]
        np.testing.assert_allclose(np.asarray(batch.reward) < 0, costs & (column < 3))
    programs = [functional.compile_train(run.config.agent, run.runner.env) for run in runs]
    assert programs[0].func is programs[1].func
    assert len(functional._programs) == 1


def test_a_resumed_run_ends_in_the_same_bits(tmp_path):
    whole = sv.train("uniform", "DeepSea-4-stochastic", seed=5, steps=1200, out=tmp_path / "whole")
    stopped = api.begin(whole.config, tmp_path / "stopped")
    next(iter(stopped.advance()))
    stopped.checkpoint()
    resumed = sv.resume(stopped.folder.path)
    leaves = [jax.tree.leaves(run.loop) for run in (whole, resumed)]
    assert all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


def test_an_episode_can_be_filmed():
    run, seen = sv.train("uniform", "DeepSea-4", steps=8), []
    run.runner.film(run.state, 0, lambda obs, draw, action: seen.append(draw()))
    assert [picture.shape for picture in seen] == [(4, 4, 3)] * 4
    assert all(picture.max() > 200 for picture in seen)
    assert coloured(np.full((2, 2, 3), 10, np.uint8)).max() == 255
