"""gymnax by name, with gymnax itself as the oracle, and gymnax's older step convention."""

import equinox as eqx
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import surveyor as sv
from surveyor.envs import families, stepping
from surveyor.envs.functional import Functional
from surveyor.errors import SurveyorError

KEY = jax.random.key(1)


def made(name):
    return families.find(name).make(name, None)


@pytest.mark.parametrize("found", ["Catch-bsuite", "CartPole-v1", "FrozenLake-misc"])
def test_step_by_step_the_same_as_gymnax(found):
    env, (oracle, params) = made(f"gymnax/{found}"), gymnax.make(found)
    obs, state = env.reset(KEY)
    expected, other = oracle.reset(KEY, params)
    # Compiled alike, with parameters as constants, or floats are rounded differently.
    known = jax.jit(lambda key, state, action: oracle.step(key, state, action, params))
    step, ends = eqx.filter_jit(env.step), 0
    for key in jax.random.split(KEY, 40):
        np.testing.assert_array_equal(obs, expected)
        action = jax.random.randint(key, (), 0, env.spec.num_actions)
        obs, state, reward, terminated, truncated, final = step(key, state, action)
        expected, other, *rest, info = known(key, other, action)
        assert [reward, terminated, truncated] == rest
        np.testing.assert_array_equal(final, info["final_observation"])
        ends += int(terminated)
    assert ends > 0


def test_names_presets_and_refusals():
    family = families.find("gymnax/FrozenLake-misc")
    assert (family.name, family.preset("gymnax/FrozenLake-misc")) == ("gymnax", "numbered")
    assert family.preset("gymnax/Catch-bsuite") == "classic"
    with pytest.raises(SurveyorError, match="did you mean 'gymnax/CartPole-v1'"):
        family.canonical("gymnax/CartPol-v1")
    with pytest.raises(SurveyorError, match="gymnax/Pendulum-v1 has continuous actions"):
        made("gymnax/Pendulum-v1")


def test_the_named_numbered_environments_are_all():
    for found in gymnax.registered_envs:
        name = f"gymnax/{found}"
        if found not in ("MNISTBandit-bsuite",):  # which downloads its pictures
            env, params = gymnax.make(found)
            numbered = hasattr(env.observation_space(params), "n")
            assert families.find(name).numbered(name) == numbered


@struct.dataclass
class Limit:
    max_steps_in_episode: int = 4


class Older:
    """An environment of gymnax 0.0.x: three steps to the right end it, four steps cut it off."""

    default_params = Limit()

    def action_space(self, params):
        return stepping.Discrete(2)

    def observation_space(self, params):
        return None

    def reset(self, key, params):
        return self.reset_env(key, params)

    def reset_env(self, key, params):
        start = jax.random.uniform(key)  # first observations differ
        return jnp.stack([0.0, 0.0, start]), (jnp.int32(0), jnp.int32(0), start)

    def step(self, key, state, action, params):
        key, reset_key = jax.random.split(key)
        obs, new, reward, done, info = self.step_env(key, state, action, params)
        first, begun = self.reset_env(reset_key, params)
        new = jax.tree.map(lambda x, y: jax.lax.select(done, x, y), begun, new)
        return jax.lax.select(done, first, obs), new, reward, done, info

    def step_env(self, key, state, action, params):
        new = (state[0] + 1, state[1] + action, state[2])
        done = self.is_terminal(new, params)
        return jnp.stack(new).astype(jnp.float32), new, jnp.float32(action), done, {}

    def is_terminal(self, state, params):
        return (state[1] >= 3) | (state[0] >= params.max_steps_in_episode)


class Bare:
    """An environment that has `reset` and a `step` that resets, and nothing else."""

    default_params = Limit()

    def __init__(self):
        inner = Older()
        self.reset, self.step, self.action_space = inner.reset, inner.step, inner.action_space
        self.observation_space = inner.observation_space


@pytest.mark.parametrize("kind", [Older, Bare])
@pytest.mark.parametrize("right", [True, False])
def test_five_values_are_adapted_with_the_same_keys(kind, right):
    env, oracle = Functional.wrap(kind()), Older()
    _, state = env.reset(KEY)
    _, other = oracle.reset(jax.random.key_data(KEY), Limit())
    for t, key in enumerate(jax.random.split(KEY, 8), 1):
        action = jnp.int32(right)
        before = other
        obs, state, reward, terminated, truncated, final = env.step(key, state, action)
        expected, other, earned, done, _ = oracle.step(
            jax.random.key_data(key), other, action, Limit()
        )
        np.testing.assert_array_equal(obs, expected)
        assert (reward, terminated | truncated) == (earned, done)
        assert done == (t % (3 if right else 4) == 0)
        if kind is Bare:  # the last observation is unknown
            np.testing.assert_array_equal(final, obs)
            assert not truncated
        else:
            assert [int(x) for x in final[:2]] == [before[0] + 1, before[1] + right]
            assert float(final[2]) == float(before[2])
            assert bool(truncated) == (bool(done) and not right)


def test_both_at_once_is_a_termination_and_unknown_limits_are_too():
    class Unlimited(Older):
        default_params = None

        def is_terminal(self, state, params):
            return state[0] >= 2

    env = Functional.wrap(Unlimited())
    _, state = env.reset(KEY)
    _, state, *_ = env.step(KEY, state, jnp.int32(0))
    assert [bool(x) for x in env.step(KEY, state, jnp.int32(0))[3:5]] == [True, False]
    env = Functional.wrap(Older(), Limit(3))
    _, state = env.reset(KEY)
    for _ in range(3):
        _, state, _, *ends, _ = env.step(KEY, state, jnp.int32(1))
    assert [bool(x) for x in ends] == [True, False]


def test_a_run_on_five_values_shares_its_program_and_resumes(tmp_path):
    run = sv.train("uniform", env := Older(), steps=64, out=tmp_path)
    assert run.result["episodes"] > 0
    assert Functional.wrap(env).inner == Functional.wrap(env).inner
    assert Functional.wrap(env).inner != Functional.wrap(Older()).inner
