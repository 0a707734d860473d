"""The bonus agent: counts and distillation, and the rewards that it learns from."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.agents.bonus import BonusDQN
from surveyor.agents.dqn import DQN, DQNState
from surveyor.types import Batch, EnvSpec, Transition
from tests.common import VECTOR, batch, begun

NUMBERS = EnvSpec(num_states=5, num_actions=2, horizon=4)


def steps(obs, action):
    n = len(obs)
    none, flags = jnp.zeros(n), jnp.zeros(n, bool)
    states, actions = jnp.asarray(obs, jnp.int32), jnp.asarray(action, jnp.int32)
    return Batch(states, actions, none, states, flags, jnp.arange(n))


def seen(agent, state, obs, action, mask=True):
    new = steps(obs, action)
    fields = {f.name: getattr(new, f.name) for f in dataclasses.fields(Transition)}
    return jax.jit(agent.observe)(state, Transition(**fields), jnp.full(len(obs), mask))


def test_on_tables_the_bonus_is_one_over_the_root_of_the_visits():
    agent = BonusDQN()
    state = seen(agent, begun(agent, NUMBERS), [0, 0, 0, 0, 3], [1, 1, 1, 1, 0])
    state = seen(agent, state, [2, 2], [0, 0], mask=False)  # steps that do not count
    bonus = state.novelty.bonus(steps([0, 3, 2, 0], [1, 0, 0, 0]))
    np.testing.assert_allclose(bonus, [0.5, 1.0, 1.0, 1.0])


def test_the_error_of_distillation_falls_where_there_is_data_and_stays_elsewhere():
    agent = BonusDQN(learning_rate=1e-3)
    state, known, new = begun(agent), batch(VECTOR, 16, seed=0), batch(VECTOR, 16, seed=50)
    fit = jax.jit(lambda novelty: novelty.fit(known))
    novelty = fit(state.novelty)
    before = float(jnp.mean(novelty._errors(novelty.net, known)))
    for _ in range(300):
        novelty = fit(novelty)
    errors = [jnp.mean(novelty._errors(novelty.net, data)) for data in (known, new)]
    assert float(errors[0]) < 0.05 * before
    assert float(errors[1]) > 5 * float(errors[0])
    fixed = jax.tree.map(np.array_equal, novelty.fixed, state.novelty.fixed)
    assert all(jax.tree.leaves(fixed))


def test_the_bonus_is_the_error_over_the_deviation_of_all_errors_so_far():
    agent = BonusDQN()
    state, first, second = begun(agent), batch(VECTOR, 16, seed=0), batch(VECTOR, 16, seed=1)
    np.testing.assert_array_equal(state.novelty.bonus(first), 0.0)
    errors, novelty = [], state.novelty
    for data in (first, second, first):
        errors.append(np.asarray(novelty._errors(novelty.net, data), np.float64))
        novelty = novelty.fit(data)
    now = np.asarray(novelty._errors(novelty.net, second))
    expected = now / np.std(np.concatenate(errors))
    np.testing.assert_allclose(novelty.bonus(second), expected, rtol=1e-2)


@pytest.mark.parametrize("spec", [VECTOR, NUMBERS], ids=["network", "table"])
def test_it_is_dqn_on_reward_plus_bonus(spec):
    agent, plain = BonusDQN(bonus=0.5), DQN(double=True, epsilon_end=0.01)
    state, key = begun(agent, spec), jax.random.key(1)
    data = batch(VECTOR, 8) if spec is VECTOR else steps([0, 1, 2, 3], [0, 1, 0, 1])
    state, _ = jax.jit(agent.learn)(state, data, key)  # errors have a deviation after one step
    bonus = state.novelty.bonus(data)
    after, update = jax.jit(agent.learn)(state, data, key)
    paid = dataclasses.replace(data, reward=data.reward + 0.5 * bonus)
    expected, _ = jax.jit(plain.learn)(DQNState(state.network, state.steps), paid, key)
    alike = jax.tree.map(lambda a, b: np.allclose(a, b, atol=1e-6), after.network, expected.network)
    assert all(jax.tree.leaves(alike))
    assert abs(float(update.metrics["bonus"]) - float(bonus.mean())) < 1e-5


def test_with_a_torso_of_one_s_own_the_fixed_network_has_other_weights():
    class Mine(eqx.Module):
        layer: eqx.nn.Linear

        def __call__(self, obs):
            return jax.nn.relu(self.layer(obs))

    agent = BonusDQN(torso=Mine(eqx.nn.Linear(4, 32, key=jax.random.key(0))))
    novelty = begun(agent).novelty
    mine, fixed = (net.torso.module.layer.weight for net in (novelty.net, novelty.fixed))
    assert abs(np.corrcoef(np.ravel(mine), np.ravel(fixed))[0, 1]) < 0.4
    np.testing.assert_allclose(np.std(mine), np.std(fixed), rtol=0.3)
