"""The promises of every registered agent, with every preset, on every kind of problem."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor import agents
from surveyor.agents.base import argmax
from surveyor.agents.dqn import DQN
from surveyor.agents.options import Setting, refuse_unread
from surveyor.agents.uniform import Uniform
from surveyor.replay import strategies as replays
from surveyor.training.steps import Round
from surveyor.types import Batch, EnvSpec
from tests.common import NAMES, PIXELS, SMALL, VECTOR
from tests.common import batch as drawn

SPECS = {
    "tree": EnvSpec(9, 2, 4),
    "chain": EnvSpec(17, 2, 4),
    "minatar": SMALL,
    "atari": PIXELS,
    "grid": NAMES,
    "classic": VECTOR,
    "numbered": EnvSpec(12, 3, 0),
}
BY_EPISODES = ("tree", "chain")
NO_BELIEF = (DQN, Uniform)
"""Agents whose index is not drawn at random."""
SPEC = EnvSpec(num_states=12, num_actions=3, horizon=12)


def problems(name, preset):
    """Return the kinds of problems that a preset is meant for; class defaults serve the rest."""
    entry = agents.find(name)
    if preset in entry.presets and preset != next(iter(entry.presets)):
        return list(entry.presets[preset].values)
    return list(BY_EPISODES) if entry.load().by_episodes else list(SPECS)


CASES = [
    (name, preset, problem)
    for name, entry in agents.REGISTRY.items()
    for preset in (entry.presets or [None])
    for problem in problems(name, preset)
]


def made(name, preset, problem):
    kind = agents.find(name).load()
    default = preset == next(iter(agents.find(name).presets), None)
    return kind.preset(problem, None if default else preset)


def shrunk(agent, spec):
    """Return the agent with a small network and batch."""
    if spec.tabular:
        return agent
    small = {"hidden": 8, "features": 6, "batch_size": 4}
    return dataclasses.replace(
        agent, **{name: x for name, x in small.items() if getattr(agent, name, 0) > x}
    )


def batch(n, seed=0, spec=SPEC):
    if not spec.tabular:
        return drawn(spec, n, seed)
    rng = np.random.default_rng(seed)
    last = spec.num_states - 1
    obs, action = rng.integers(0, last + 1, n), rng.integers(0, spec.num_actions, n)
    return Batch(
        jnp.asarray(obs, jnp.int32),
        jnp.asarray(action, jnp.int32),
        jnp.asarray(rng.standard_normal(n), jnp.float32),
        jnp.asarray((obs + 1) % (last + 1), jnp.int32),
        jnp.asarray(obs == last),
        jnp.arange(n),
    )


def same(a, b):
    return all(
        np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


def like(a, b):
    shapes = [jax.tree.map(lambda x: (x.shape, x.dtype), tree) for tree in (a, b)]
    return shapes[0] == shapes[1]


@pytest.mark.parametrize(("name", "preset", "problem"), CASES)
def test_every_verb_compiles_and_keeps_shapes_with_every_preset(name, preset, problem):
    spec = SPECS[problem]
    agent = shrunk(made(name, preset, problem), spec)
    size, actions = agent.schedule.batch_size, spec.num_actions

    @jax.jit  # in one program, which compiles sooner than six
    def everything(key, data, seen):
        start = agent.init(spec, key)
        index = agent.sample(start, jax.random.fold_in(key, 1))
        observed = agent.observe(start, seen, jnp.arange(5) < 4)
        learnt, update = agent.learn(observed, data, jax.random.fold_in(key, 2))
        assert like(start, observed)
        assert like(start, learnt)
        assert like(index, agent.sample(learnt, key))
        obs = seen.obs[:3]
        one = agent.q(learnt, index, obs[0])
        acts = agent.act(learnt, index, obs[0], jnp.linspace(0.1, 0.9, actions))
        values = (agent.q(learnt, index, obs), agent.q(learnt, agent.greedy(learnt), obs))
        belief = agent.q_posterior(learnt, obs, key) if agent.closed_form else None
        return values, one, acts, update, agent.diagnose(learnt, obs), belief

    outcome = everything(jax.random.key(0), batch(size, 0, spec), batch(5, 1, spec))
    (q, greedy), one, act, update, logged, belief = outcome
    assert q.shape == greedy.shape == (3, actions)
    assert one.shape == (actions,)
    assert 0 <= int(act) < actions
    assert all(value.shape == () for value in update.metrics.values())
    assert update.errors is None or update.errors.shape == (size,)
    assert "q_mean" in logged
    if belief is not None:
        assert belief.mean.shape == (3, actions)
        assert belief.covariance.shape == (3 * actions, 3 * actions)
        assert {"posterior_trace", "posterior_condition"} & set(logged) or name == "ideal-su"
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(outcome))


@pytest.mark.parametrize(("name", "preset", "problem"), CASES)
def test_every_preset_is_read_in_full_where_it_is_meant_for(name, preset, problem):
    agent, by_episodes = made(name, preset, problem), problem in BY_EPISODES
    refuse_unread(agent, Setting(SPECS[problem].tabular, by_episodes), problem)
    replays.fitting(agent.schedule.replay, "episodes" if by_episodes else "steps")
    if by_episodes:
        assert agent.schedule.every == 0
        return
    assert agent.schedule.updates == 0 or Round.of(agent).updates > 0


@pytest.fixture(params=sorted(agents.REGISTRY))
def agent(request):
    return agents.find(request.param).load()()


def test_same_key_same_result_and_other_key_other_sample(agent):
    init = jax.jit(agent.init, static_argnums=0)
    first = init(SPEC, jax.random.key(0))
    assert same(first, init(SPEC, jax.random.key(0)))
    sample = jax.jit(agent.sample)
    assert same(sample(first, jax.random.key(1)), sample(first, jax.random.key(1)))
    if not isinstance(agent, NO_BELIEF):
        others = [sample(first, jax.random.key(i)) for i in range(2, 8)]
        assert not all(same(sample(first, jax.random.key(1)), other) for other in others)


def test_nothing_valid_to_observe_changes_nothing(agent):
    @jax.jit
    def both(key):
        state = agent.init(SPEC, key)
        after = agent.observe(state, batch(4), jnp.zeros(4, bool))
        index, obs = agent.greedy(state), jnp.arange(3)
        beliefs = [agent.q_posterior(one, obs) for one in (state, after)]
        return beliefs, [agent.q(one, index, obs) for one in (state, after)]

    (before, now), values = both(jax.random.key(0))
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(now), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(*values)


def test_the_q_posterior_is_the_distribution_of_sampled_q(agent):
    @jax.jit
    def trained(key):
        state = agent.init(SPEC, key)
        state = agent.observe(state, batch(50), jnp.ones(50, bool))
        size = agent.schedule.batch_size
        batches = jax.tree.map(lambda *x: jnp.stack(x), *[batch(size, i) for i in range(20)])
        keys = jax.random.split(key, 20)
        step = lambda state, one: (agent.learn(state, *one)[0], None)  # noqa: E731
        return jax.lax.scan(step, state, (batches, keys))[0]

    @jax.jit
    def draw(state, keys):
        return jax.vmap(lambda k: agent.q(state, agent.sample(state, k), obs).reshape(-1))(keys)

    state, obs = trained(jax.random.key(0)), jnp.array([0, 5, 11])
    belief = jax.jit(agent.q_posterior)(state, obs)
    assert belief.mean.shape == (3, 3)
    assert belief.covariance.shape == (9, 9)
    draws = np.asarray(draw(state, jax.random.split(jax.random.key(9), 20_000)), np.float64)
    scale = np.sqrt(np.diag(belief.covariance)) + 1e-6
    assert np.all(np.abs(draws.mean(0) - belief.mean.reshape(-1)) < 0.1 * scale)
    sample = np.atleast_2d(np.cov(draws.T))
    assert np.all(np.abs(sample - belief.covariance) < 0.15 * np.outer(scale, scale) + 1e-9)


def test_hyperparameters_are_plain_values_and_name_and_agent_agree(agent):
    values = dataclasses.asdict(agent)
    assert all(isinstance(value, int | float | str | bool) for value in values.values())
    name = agents.name_of(agent)
    assert agents.make(name, values) == agent
    assert hash(agent) == hash(agents.make(name, values))


def test_ties_are_broken_fairly_and_only_ties():
    u = jax.random.uniform(jax.random.key(0), (6000, 3))
    tied = jax.vmap(lambda u: argmax(jnp.array([1.0, 0.0, 1.0]), u))(u)
    counts = np.bincount(tied, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 3000) < 200
    clear = jax.vmap(lambda u: argmax(jnp.array([0.0, 0.0, 1e-6]), u))(u)
    assert set(clear.tolist()) == {2}
