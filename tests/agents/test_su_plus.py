"""SU+: its belief, its targets and their fixed point, and exact posterior sampling, in NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv
from surveyor.agents.su_plus import SHARE
from surveyor.types import Batch, EnvSpec, Trail, Transition
from tests.common import VECTOR, batch, begun

RING = EnvSpec(num_states=6, num_actions=2)
SIZE = 6


def every_step(after, terminated):
    """Return a batch of every step of an environment without rewards, given s' of each (s, a)."""
    count, actions = np.shape(after)
    obs, action = np.divmod(np.arange(count * actions), actions)
    arrays = (obs, action, np.zeros(len(obs), np.float32), np.ravel(after), np.ravel(terminated))
    return Batch(*map(jnp.asarray, arrays), number=jnp.arange(len(obs)))


def ring():
    """Return every step of a ring: action 0 stays, action 1 goes on, and 5 leads back to 0."""
    state = np.arange(SIZE)
    after = np.stack([state, (state + 1) % SIZE], axis=1)
    return every_step(after, np.zeros((SIZE, 2), bool))


def seen(agent, state, steps, mask=None):
    fields = {f.name: getattr(steps, f.name) for f in dataclasses.fields(Transition)}
    mask = jnp.ones(len(steps.action), bool) if mask is None else jnp.asarray(mask)
    return jax.jit(agent.observe)(state, Transition(**fields), mask)


def trained(agent, state, steps, count):
    one = lambda state, key: (agent.learn(state, steps, key)[0], None)  # noqa: E731
    keys = jax.random.split(jax.random.key(0), count)
    return jax.jit(lambda state: jax.lax.scan(one, state, keys)[0])(state)


def test_q_is_the_mean_and_what_each_sample_supposes_in_its_own_weight():
    agent = sv.SUPlus(
        ensemble=5, envs=16, train_every=16, curiosity=0.3, spread=16.0, untried=0.7, contrast=3.0
    )
    state, data = begun(agent), batch(VECTOR, 16)
    near = data.obs.at[0].set(0.0).at[8].set(0.0).at[8, 0].set(0.11)  # new in one number alone
    data = dataclasses.replace(data, reward=data.reward / 100, obs=near)
    for i in range(5):  # so that the heads are not zero
        state = seen(agent, state, data, np.arange(16) < 8)
        state, _ = jax.jit(agent.learn)(state, data, jax.random.key(i))
    heads, averaged = (
        np.asarray(q(data.obs), np.float64) for q in (state.model.q, state.model.target_q)
    )
    assert np.abs(heads - averaged).max() > 1e-3
    codes = state.visits.codes(data.obs)
    visits = np.asarray(state.visits.at(codes))
    assert set(visits[:8, -1].ravel()) == {0, 5}
    uniforms = np.moveaxis(np.asarray(state.visits.uniforms(codes, 5)), -1, -2)
    supposed = (uniforms / np.sqrt(1 + agent.contraction * visits)[:, :, None]).mean(1)
    untried = (visits == 0).mean(1)
    np.testing.assert_allclose(untried[8].min(), 1 / len(visits[0]))
    assert np.ptp(state.returns.seen) < 1
    for k in range(1, 6):
        down = 16 ** ((k - 1) / 4)
        ahead = (0.7 * untried + (1 - untried) * np.clip(heads[:, k], 0, 1)) ** (1 / 3)
        found = agent.q(state, jnp.int32(k), data.obs)
        expected = heads[:, 0] + 0.3 / down * (ahead + supposed[:, k - 1])
        np.testing.assert_allclose(found, expected, atol=1e-5)
    best_guess = agent.q(state, agent.greedy(state), data.obs)
    np.testing.assert_allclose(best_guess, averaged[:, 0], atol=1e-6)


def test_curiosity_grows_with_the_returns_that_were_met():
    agent = sv.SUPlus(envs=4, train_every=4, curiosity=0.02)
    state, data = begun(agent), batch(VECTOR, 4)
    ends = jnp.ones(4, bool)
    for reward, scale in ((-0.2, 1.0), (5.0, 5.2), (-3.0, 8.0)):
        now = dataclasses.replace(data, reward=jnp.full(4, reward), terminated=ends)
        state = seen(agent, state, now)
        assert float(agent.weight(state, jnp.int32(1))) == pytest.approx(0.02 * scale, rel=1e-5)


def test_curiosity_is_bounded_by_the_odds_that_a_step_is_nothing_new():
    agent, state = sv.SUPlus(spread=10.0), begun(sv.SUPlus())
    for steps, new, odds in ((0, 0, 1.0), (400, 400, 1 / 401), (400, 100, 301 / 101)):
        state = dataclasses.replace(state, steps=jnp.array([steps, new]))
        for k in (1, 10):
            assert float(agent.weight(state, jnp.int32(k))) == pytest.approx(SHARE * odds)
    state = dataclasses.replace(state, steps=jnp.array([100_000, 10]))
    for k, weight in ((1, 30.0), (10, 3.0)):
        assert float(agent.weight(state, jnp.int32(k))) == pytest.approx(weight)


@pytest.mark.parametrize("kind", ["table", "network"])
def test_what_is_supposed_converges_and_a_circle_adds_nothing_up(kind):
    agent = sv.SUPlus(ensemble=3, foresight=0.8, contraction=100.0, learning_rate=0.5)
    spec, steps = RING, ring()
    if kind == "network":  # of flags, which are seen as a whole only
        spec = EnvSpec(0, 2, shape=(SIZE,), dtype="bool")
        one_hot = {
            name: jnp.eye(SIZE, dtype=bool)[getattr(steps, name)] for name in ("obs", "next_obs")
        }
        steps = dataclasses.replace(steps, **one_hot)
        rates = {"learning_rate": 3e-3, "hidden": 32, "target_every": 5, "max_norm": 1e3}
        agent = dataclasses.replace(agent, **rates, loss="squared", envs=1, train_every=1)
        agent = dataclasses.replace(agent, foresight=0.8**0.5, contrast=2.0)
    state = seen(agent, begun(agent, spec), steps, np.asarray(steps.number) != 7)  # not from 3 to 4
    state = trained(agent, state, steps, 200 if kind == "table" else 4000)
    states = jnp.arange(SIZE) if kind == "table" else jnp.eye(SIZE, dtype=bool)
    supposed, never = (np.asarray(x) for x in agent.supposed(state, states))
    assert never.sum() == 1
    assert never[3, 0, 1]
    ahead = np.zeros(supposed.shape)
    for _ in range(200):
        ahead = np.where(never, 0.9, ahead)
        best = np.maximum(supposed, ahead).max(-1)
        ahead = 0.8 * np.stack([best, np.roll(best, -1, axis=0)], axis=-1)
    found = np.asarray(state.model.q(states))[:, 1:]
    np.testing.assert_allclose(found, ahead, atol=1e-3 if kind == "table" else 0.03)
    assert found.max() <= 1


def test_the_mean_stays_honest_while_there_is_no_reward():
    agent = sv.SUPlus(envs=16, train_every=16, learning_rate=1e-2, target_every=20)
    state, data = begun(agent), batch(VECTOR, 16)
    nothing = dataclasses.replace(data, reward=jnp.zeros(16), terminated=jnp.zeros(16, bool))
    net = jax.tree.map(lambda x: x + 0.1, state.model.trained.target)  # it begins with a claim
    claims = dataclasses.replace(state.model.trained, target=net, net=net)
    state = dataclasses.replace(state, model=dataclasses.replace(state.model, trained=claims))
    assert np.abs(agent.q(state, agent.greedy(state), data.obs)).min() > 0.1
    state = trained(agent, seen(agent, state, nothing), nothing, 1_000)
    mean = agent.q(state, agent.greedy(state), data.obs)[jnp.arange(16), data.action]
    assert np.abs(mean).max() < 0.02
    np.testing.assert_array_equal(state.returns.seen, 0.0)


def test_the_target_of_the_mean_is_bounded_by_the_returns_that_were_met():
    agent = sv.SUPlus(envs=8, train_every=8, discount=0.9)
    state, data = begun(agent), batch(VECTOR, 8)
    poor = dataclasses.replace(data, reward=jnp.full(8, 0.5), terminated=jnp.ones(8, bool))
    state = seen(agent, state, poor)
    net = jax.tree.map(lambda x: x + 1, state.model.trained.target)  # claims far too much
    claims = dataclasses.replace(state.model.trained, target=net, net=net)
    state = dataclasses.replace(state, model=dataclasses.replace(state.model, trained=claims))
    assert np.asarray(state.model.target_q(data.next_obs)).min() > 1
    found = agent.targets(state, data)[:, 0]
    bound = data.reward + np.where(data.terminated, 0, 0.9 * 0.5)
    np.testing.assert_allclose(found, bound, atol=1e-6)


def test_over_several_steps_what_is_supposed_is_that_one_step_on():
    agent = sv.SUPlus(ensemble=2, n_step=3, envs=2, train_every=2, batch_size=8, foresight=0.5)
    agent = dataclasses.replace(agent, contrast=1.0)
    state, data = begun(agent), batch(VECTOR, 8)
    middle = batch(VECTOR, 8, seed=9)
    for steps in (middle, data):  # so that no action there is untried
        for action in range(3):
            after = dataclasses.replace(steps, obs=steps.next_obs, action=jnp.full(8, action))
            state = seen(agent, state, after)
            state = seen(agent, state, dataclasses.replace(after, obs=steps.obs))
    trail = Trail(
        jnp.stack([middle.obs, data.next_obs], 1),
        jnp.stack([middle.action, data.action], 1),
        jnp.tile(jnp.where(jnp.arange(8) == 3, 0.0, 0.9)[:, None], (1, 2)),
    )
    data = dataclasses.replace(data, trail=trail, terminated=jnp.arange(8) == 3)
    supposed = np.asarray(agent.supposed(state, middle.obs)[0])
    ended = np.arange(8)[:, None] == 3  # the fourth has one step only
    found = agent.targets(state, data)[:, 1:]
    np.testing.assert_allclose(found, np.where(ended, 0.0, 0.5 * supposed.max(-1)), atol=1e-5)
    cut_off = dataclasses.replace(data, terminated=jnp.zeros(8, bool))
    later = np.asarray(agent.supposed(state, data.next_obs)[0])
    found = agent.targets(state, cut_off)[:, 1:]
    expected = 0.5 * np.where(ended, later.max(-1), supposed.max(-1))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    legal = jnp.tile(jnp.array([True, False, True]), (8, 1))
    masks = {"trail": dataclasses.replace(trail, legal=legal), "next_legal": ~legal}
    found = agent.targets(state, dataclasses.replace(cut_off, **masks))[:, 1:]
    expected = 0.5 * np.where(ended, later[:, :, 1], supposed[:, :, [0, 2]].max(-1))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_every_sample_is_drawn_and_the_best_guess_never():
    agent = sv.SUPlus(ensemble=4)
    state = begun(agent, RING)
    drawn = [int(agent.sample(state, jax.random.key(i))) for i in range(40)]
    assert set(drawn) == {1, 2, 3, 4}
    assert agent.settled(begun(agent), batch(VECTOR)) == 1.0


def test_the_mean_of_a_table_moves_less_the_more_often_a_pair_was_met():
    agent = sv.SUPlus(ensemble=2, envs=12, train_every=12, learning_rate=0.5, settling=0.25)
    state, data = begun(agent, RING), ring()
    for times in range(4):
        state = seen(agent, state, data, np.asarray(data.number) % 4 < times)
    visits = np.array([3, 2, 1, 0] * 3)
    data = dataclasses.replace(data, reward=jnp.full(12, 0.1), terminated=jnp.ones(12, bool))
    before = np.asarray(state.model.q(data.obs))
    after, _ = agent.learn(state, data, jax.random.key(0))
    moved = (np.asarray(after.model.q(data.obs)) - before)[np.arange(12), :, data.action]
    np.testing.assert_allclose(moved[:, 0], 0.05 / (1 + 0.25 * visits), rtol=1e-5)
    np.testing.assert_allclose(moved[:, 1:], -0.5 * 0.9, rtol=1e-5)  # supposed rewards do not


def walk(length):
    """Return s' of each (s, a) on the tree of this length, and whether the episode ends there.

    From state 2i, action 0 goes on to 2i + 2 and action 1 to 2i + 1, where everything ends.
    """
    even = 2 * np.arange(length)
    after = np.zeros((2 * length + 1, 2), int)
    after[even] = np.stack([even + 2, even + 1], axis=1)
    ends = np.ones(after.shape, bool)
    ends[even[:-1], 0] = False
    return after, ends


def halfway(length):
    """Return every step of a tree, which of them were tried, and how often PSRL goes on.

    The prior of that PSRL: one reward, at a place where nobody has been, all equally likely. Its
    policy in a state goes on with the probability that the reward is farther on, given that it is
    here or farther on.
    """
    after, ends = walk(length)
    tried = np.zeros(after.shape, bool)
    tried[2 * np.arange(length - 1), 0] = True
    tried[[2, 6], 1] = True
    unmet = ~tried[2 * np.arange(length)]
    farther = np.append(np.cumsum(unmet.sum(1)[::-1])[::-1][1:], 0) + unmet[:, 0]
    return every_step(after, ends), tried, farther / (farther + unmet[:, 1])


def goes_on(agent, state, indices, length):
    """Return how often the greedy policies of these indices go on in each state of a tree."""
    q = jax.lax.map(lambda index: agent.q(state, index, 2 * jnp.arange(length)), indices)
    return np.mean(np.asarray(q)[..., 0] > np.asarray(q)[..., 1], axis=0)


def test_its_policies_are_those_of_posterior_sampling_on_the_tree_and_ideal_su_s_are_not():
    """Where the transitions are known, a sample goes to each unmet place as often as PSRL does.

    Idealised SU, whose prior has a normal reward at every place, is beside the PSRL of that prior.
    """
    length, samples = 6, 4000
    steps, tried, exact = halfway(length)
    spec = EnvSpec(tried.shape[0], 2, horizon=length)
    agent = sv.SUPlus(
        ensemble=samples, contraction=1e12, foresight=0.999999, untried=0.0, spread=1.0,
        learning_rate=1.0, batch_size=tried.size,
    )  # fmt: skip
    state = begun(agent, spec)
    state = trained(agent, seen(agent, state, steps, tried.ravel()), steps, 20)
    ours = goes_on(agent, state, jnp.arange(1, samples + 1), length)
    np.testing.assert_allclose(ours, exact, atol=4 * 0.5 / samples**0.5)

    ideal = sv.IdealSU(discount=1.0, theta=1.0, beta=1e-6, policy_samples=500)
    state = seen(ideal, begun(ideal, spec), steps)  # it has to have met what it knows of
    met = jnp.where(tried, state.model.visits, 0.0)
    state = dataclasses.replace(state, model=dataclasses.replace(state.model, visits=met))
    state = trained(ideal, state, steps, 30)
    draws = jax.vmap(lambda key: ideal.sample(state, key))(
        jax.random.split(jax.random.key(1), 4000)
    )
    theirs = goes_on(ideal, state, draws, length)
    unmet = ~tried[2 * np.arange(length)]
    reward = np.random.default_rng(0).standard_normal((40_000, length, 2)) * unmet
    value, up = np.zeros(len(reward)), np.zeros(length)
    for place in reversed(range(length)):
        ahead = reward[:, place, 0] + value
        up[place] = np.mean(ahead > reward[:, place, 1])
        value = np.maximum(ahead, reward[:, place, 1])
    assert np.abs(theirs - up).max() > 0.3


def test_the_belief_is_that_of_all_samples():
    agent = sv.SUPlus(ensemble=5)
    state = seen(agent, begun(agent, RING), ring(), np.arange(12) % 3 > 0)
    states = jnp.array([0, 3])
    samples = np.stack([agent.q(state, jnp.int32(k), states) for k in range(1, 6)])
    belief = agent.q_posterior(state, states)
    np.testing.assert_allclose(belief.mean, samples.mean(0), atol=1e-6)
    covariance = np.cov(samples.reshape(5, -1), rowvar=False, bias=True)
    np.testing.assert_allclose(belief.covariance, covariance, atol=1e-6)


@pytest.mark.usefixtures("optimised")
def test_it_solves_a_deep_sea_of_pictures():
    sizes = {"hidden": 64, "batch_size": 128, "target_every": 4, "learning_rate": 2e-3}
    rhythm = {"train_every": 1, "gradient_steps": 1, "envs": 1, "n_step": 1, "warmup": 0}
    agent = dataclasses.replace(sv.SUPlus.preset("classic"), **sizes, **rhythm)
    run = sv.train(agent, "DeepSea-10", steps=1_500, seed=1)
    assert sv.evaluate(run, 1).mean_return > 0.98
