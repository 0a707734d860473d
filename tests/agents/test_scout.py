"""Scout: its belief, its targets and their fixed point, against NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv
from surveyor.agents.scout import RARE, Scout
from surveyor.types import Batch, EnvSpec, Trail, Transition
from tests.common import VECTOR, batch, begun

RING = EnvSpec(num_states=6, num_actions=2)
SIZE = 6


def ring():
    """Return every step of a ring: action 0 stays, action 1 goes on, and 5 leads back to 0."""
    obs, action = np.divmod(np.arange(2 * SIZE), 2)
    after, none = (obs + action) % SIZE, np.zeros(2 * SIZE)
    arrays = (obs, action, none.astype(np.float32), after, none.astype(bool), np.arange(2 * SIZE))
    return Batch(*map(jnp.asarray, arrays))


def seen(agent, state, steps, mask=None):
    fields = {f.name: getattr(steps, f.name) for f in dataclasses.fields(Transition)}
    mask = jnp.ones(len(steps.action), bool) if mask is None else jnp.asarray(mask)
    return jax.jit(agent.observe)(state, Transition(**fields), mask)


def test_q_is_the_mean_and_the_weighted_surprises():
    agent = Scout(ensemble=4, envs=16, train_every=16)
    state, data = begun(agent), batch(VECTOR, 16)
    for i in range(5):  # so that the heads are not zero
        state = seen(agent, state, data, np.arange(16) < 8)
        state, _ = jax.jit(agent.learn)(state, data, jax.random.key(i))
    heads = np.asarray(state.model.q(data.obs), np.float64)
    cells = state.visits.cells(data.obs)
    visits = np.asarray(state.visits.at(cells))
    assert set(visits[:8].ravel()) == {0, 5}
    assert not visits[8:].any()
    deviation = 1 / np.sqrt(1 + agent.contraction * visits)
    hopes = np.asarray(state.visits.uniforms(cells, 4)) * deviation[:, None]
    weight = agent.curiosity * (1 - 8 / 40 + RARE)  # 8 of 40 steps were new
    for k in range(1, 5):
        ahead = np.clip(heads[:, k], 0, 1) + hopes[:, k - 1]
        found = agent.q(state, jnp.int32(k), data.obs)
        np.testing.assert_allclose(found, heads[:, 0] + weight * ahead, atol=1e-5)
    best_guess = agent.q(state, agent.greedy(state), data.obs)
    np.testing.assert_allclose(best_guess, heads[:, 0], atol=1e-6)


def test_surprises_converge_to_the_largest_one_ahead_and_a_circle_adds_nothing_up():
    agent = Scout(ensemble=3, foresight=0.8, learning_rate=3e-3, hidden=32, loss="squared")
    state, steps = begun(agent, RING), ring()
    state = seen(agent, state, steps, np.asarray(steps.number) != 7)  # 3 → 4 was never tried
    one = lambda state, key: (agent.learn(state, steps, key)[0], None)  # noqa: E731
    keys = jax.random.split(jax.random.key(0), 4000)
    state, _ = jax.jit(lambda state: jax.lax.scan(one, state, keys))(state)
    hopes = np.asarray(agent.hopes(state, jnp.arange(SIZE)), np.float64)  # (states, samples, 2)
    obs, action, after = (np.asarray(x) for x in (steps.obs, steps.action, steps.next_obs))
    ahead = np.zeros_like(hopes)
    for _ in range(200):
        ahead[obs, :, action] = 0.8 * np.maximum(hopes, ahead)[after].max(-1)
    found = np.asarray(state.model.q(jnp.arange(SIZE)))[:, 1:]
    np.testing.assert_allclose(found, ahead, atol=0.03)
    assert ahead.max() <= 1


def test_the_mean_stays_honest_while_there_is_no_reward():
    agent = Scout(envs=16, train_every=16, learning_rate=1e-2)
    state, data = begun(agent), batch(VECTOR, 16)
    nothing = dataclasses.replace(data, reward=jnp.zeros(16), terminated=jnp.zeros(16, bool))
    state = seen(agent, state, nothing)
    one = lambda state, key: (agent.learn(state, nothing, key)[0], None)  # noqa: E731
    keys = jax.random.split(jax.random.key(0), 300)
    state, _ = jax.jit(lambda state: jax.lax.scan(one, state, keys))(state)
    mean = agent.q(state, agent.greedy(state), data.obs)[jnp.arange(16), data.action]
    assert np.abs(mean).max() < 0.02
    np.testing.assert_array_equal(state.returns.seen, 0.0)


def test_the_target_of_the_mean_is_bounded_by_the_returns_that_were_met():
    agent = Scout(envs=8, train_every=8, discount=0.9)
    state, data = begun(agent), batch(VECTOR, 8)
    poor = dataclasses.replace(data, reward=jnp.full(8, 0.5), terminated=jnp.ones(8, bool))
    state = seen(agent, state, poor)
    net = jax.tree.map(lambda x: x + 1, state.model.trained.target)  # claims far too much
    claims = dataclasses.replace(state.model.trained, target=net, net=net)
    state = dataclasses.replace(state, model=dataclasses.replace(state.model, trained=claims))
    assert np.asarray(state.model.target_q(data.next_obs)).min() > 1
    found = agent.mean(state, data)[:, 0]
    bound = data.reward + np.where(data.terminated, 0, 0.9 * 0.5)
    np.testing.assert_allclose(found, bound, atol=1e-6)


def test_over_several_steps_surprises_are_those_one_step_on():
    agent = Scout(ensemble=2, n_step=3, envs=2, train_every=2, batch_size=8, foresight=0.5)
    state, data = begun(agent), batch(VECTOR, 8)
    middle = batch(VECTOR, 8, seed=9)
    trail = Trail(
        jnp.stack([middle.obs, data.next_obs], 1),
        jnp.stack([middle.action, data.action], 1),
        jnp.tile(jnp.where(jnp.arange(8) == 3, 0.0, 0.9)[:, None], (1, 2)),
        data.reward,
    )
    data = dataclasses.replace(data, trail=trail, terminated=jnp.arange(8) == 3)
    hopes = np.asarray(agent.hopes(state, middle.obs))
    ended = np.arange(8)[:, None] == 3  # the fourth has one step only
    found = agent.surprise(state, data)
    np.testing.assert_allclose(found, np.where(ended, 0.0, 0.5 * hopes.max(-1)), atol=1e-5)
    cut_off = dataclasses.replace(data, terminated=jnp.zeros(8, bool))
    after = np.asarray(agent.hopes(state, data.next_obs)).max(-1)
    found = agent.surprise(state, cut_off)
    np.testing.assert_allclose(found, np.where(ended, 0.5 * after, 0.5 * hopes.max(-1)), atol=1e-5)
    legal = jnp.tile(jnp.array([True, False, True]), (8, 1))
    masks = {"trail": dataclasses.replace(trail, legal=legal), "next_legal": ~legal}
    found = agent.surprise(state, dataclasses.replace(cut_off, **masks))
    one_on, after = hopes[:, :, [0, 2]].max(-1), agent.hopes(state, data.next_obs)[:, :, 1]
    np.testing.assert_allclose(found, np.where(ended, 0.5 * after, 0.5 * one_on), atol=1e-5)


@pytest.mark.usefixtures("optimised")
def test_it_solves_a_deep_sea_of_pictures():
    sizes = {"hidden": 64, "batch_size": 128, "target_every": 4, "learning_rate": 2e-3}
    rhythm = {"train_every": 1, "gradient_steps": 1, "envs": 1, "n_step": 1, "warmup": 0}
    agent = dataclasses.replace(sv.Scout.preset("classic"), **sizes, **rhythm)
    run = sv.train(agent, "DeepSea-10", steps=1_500, seed=1)
    assert sv.evaluate(run, 1).mean_return > 0.98
