"""SU: algorithm 1 and equation 3 with numbers of their own, and what each option says."""

import ast
import dataclasses
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor import SU
from surveyor.agents import su
from surveyor.inference.policies import Joint, Marginal, PerExample
from surveyor.models.losses import Equation4
from surveyor.types import Batch, EnvSpec, Schedule
from tests.common import SMALL as IMAGES
from tests.common import VECTOR, begun, compiled, observations
from tests.common import batch as drawn

SPEC = EnvSpec(num_states=4, num_actions=2, horizon=4)
SMALL = SU(features=3, batch_size=2, gradient_steps=1)
NET = SU(hidden=16, features=5)


def transition(obs, action, reward, next_obs, terminated):
    return Batch(
        jnp.array(obs), jnp.array(action), jnp.array(reward), jnp.array(next_obs),
        jnp.array(terminated), jnp.arange(len(obs)),
    )  # fmt: skip


def with_psi(state, psi):
    """Put ψ(s, a) into the table: an array of states × actions × features."""
    flat = jnp.asarray(psi, jnp.float32).reshape(4, -1)
    packed = state.model.rows.packed.at[:, :6].set(flat)
    return eqx.tree_at(lambda s: s.model.rows.packed, state, packed)


def with_w(state, w):
    return eqx.tree_at(lambda s: s.model.shared.w, state, jnp.array(w))


@pytest.fixture(scope="module")
def state():
    return begun(SMALL, SPEC)


def test_the_paper_s_agent_has_at_most_25_options_in_at_most_200_lines():
    assert len(dataclasses.fields(SU)) <= 25
    source = inspect.getsource(su)
    assert len(source.splitlines()) <= 200
    parts = {
        alias.name.rpartition(".")[2]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert not parts & {"Learner", "QLearner", "Visits", "Returns", "PlainTable"}  # ours


def test_q_is_the_inner_product_of_psi_and_w(state):
    psi = np.arange(24.0).reshape(4, 2, 3)
    state, w = with_psi(state, psi), jnp.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(SMALL.q(state, w, jnp.arange(4)), psi @ np.asarray(w))
    np.testing.assert_array_equal(SMALL.greedy(with_w(state, [1.0, 2.0, 3.0])), [1, 2, 3])


def test_q_posterior_is_equation_3(state):
    psi = np.random.default_rng(0).standard_normal((4, 2, 3))
    state = with_w(with_psi(state, psi), [1.0, 2.0, 3.0])
    seen = transition([0, 1, 2], [0, 1, 0], [0.0, 1.0, 0.0], [1, 2, 3], [False, False, True])
    phi = np.asarray(state.model.phi(seen.obs, seen.action), np.float64)
    state = jax.jit(SMALL.observe)(state, seen, jnp.array([True, True, False]))
    belief = SMALL.q_posterior(state, jnp.array([2, 0]))
    Psi = psi[[2, 0]].reshape(4, 3)
    np.testing.assert_allclose(belief.mean.reshape(-1), Psi @ [1, 2, 3], rtol=1e-5)
    precision = np.eye(3) / SMALL.theta + phi[:2].T @ phi[:2] / SMALL.beta
    covariance = Psi @ np.linalg.inv(precision) @ Psi.T
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-3, atol=1e-4)


def test_samples_are_around_w_with_the_posterior_s_covariance():
    agent = dataclasses.replace(SMALL, theta=4.0)
    fresh = with_w(begun(agent, SPEC), [1.0, 2.0, 3.0])
    keys = jax.random.split(jax.random.key(1), 20_000)
    draws = np.asarray(jax.vmap(lambda key: agent.sample(fresh, key))(keys), np.float64)
    np.testing.assert_allclose(draws.mean(0), [1, 2, 3], atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), 4 * np.eye(3), atol=0.15)


def test_the_posterior_shrinks_by_beta_and_forgets_by_zeta():
    """Λ ← ζΛ + β⁻¹φφᵀ, twice for the same φ, in float64."""
    agent = dataclasses.replace(SMALL, theta=2.0, beta=0.5, zeta=0.9)
    state = begun(agent, SPEC)
    seen = transition([0, 0], [0, 0], [0.0, 0.0], [1, 1], [False, False])
    phi = np.asarray(state.model.phi(seen.obs, seen.action), np.float64)[0]
    np.testing.assert_allclose(phi @ phi, 1, rtol=1e-5)
    once = 0.9 * np.eye(3) / 2 + np.outer(phi, phi) / 0.5
    precision = 0.9 * once + np.outer(phi, phi) / 0.5
    after = jax.jit(agent.observe)(state, seen, jnp.ones(2, bool))
    np.testing.assert_allclose(after.posterior.covariance, np.linalg.inv(precision), rtol=1e-4)


BATCH = transition([0, 0], [0, 1], [0.0, 1.0], [1, 1], [False, True])
NEXT_PSI = np.zeros((4, 2, 3))
NEXT_PSI[1] = [[4.0, 0, 0], [0, 1.0, 0]]


def targets(state, **options):
    agent = dataclasses.replace(SMALL, **options)
    filled = with_w(with_psi(state, NEXT_PSI), [1.0, 2.0, 0])
    return jax.jit(agent.targets)(filled, BATCH, jax.random.key(0))


@pytest.mark.parametrize("discount", [1.0, 0.5])
def test_targets_are_discounted_and_nothing_follows_an_end(state, discount):
    """With hardly any deviation π takes the first action, of Q 4 against 2."""
    found = targets(state, discount=discount, policy_scale=1e-6)
    np.testing.assert_allclose(found.psi, [[4 * discount, 0, 0], [0, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(found.q, [4 * discount, 0], atol=1e-6)


def test_the_q_target_follows_the_policy_or_the_best_action(state):
    """With all but infinite deviation π shares its weight: Q 4 and 2 make 3, or 4 at best."""
    wide = {"discount": 1.0, "policy": "marginal", "policy_scale": 1e6, "policy_samples": 4000}
    best, mean = (targets(state, q_target=kind, **wide) for kind in ("max", "policy"))
    assert float(best.q[0]) == 4.0
    assert float(mean.q[0]) == pytest.approx(3.0, abs=0.1)
    np.testing.assert_array_equal(best.psi, mean.psi)
    np.testing.assert_allclose(mean.psi[0], [2.0, 0.5, 0], atol=0.1)


def test_algorithm_1_s_own_draw_sets_the_targets():
    """policy = per_example: a' maximises ⟨ψ̂(s', ·), w_b⟩, w_b ~ N(ŵ, Σ) for each example b."""
    agent = SU(features=3, policy="per_example", discount=0.5)
    rng, n = np.random.default_rng(0), 60
    state = begun(agent, SPEC)
    psi, w = rng.standard_normal((4, 2, 3)).astype(np.float32), np.float32([0.3, -0.2, 0.1])
    state = with_w(with_psi(state, psi), w)
    seen = transition([0, 1], [0, 1], [0.0, 0.0], [1, 2], [False, False])
    state = jax.jit(agent.observe)(state, seen, jnp.ones(2, bool))
    following, key = rng.integers(0, 4, n), jax.random.key(5)
    data = transition(*[np.zeros(n, np.int32)] * 2, np.zeros(n, np.float32), following,
                      np.arange(n) % 5 == 0)  # fmt: skip
    found = jax.jit(agent.targets)(state, data, key)
    noise = np.asarray(jax.random.normal(key, (3, n)), np.float64)
    draws = w + np.linalg.solve(np.asarray(state.posterior.R, np.float64), noise).T
    chosen = np.einsum("bad,bd->ba", psi[following], draws).argmax(1)
    ahead = 0.5 * (np.arange(n) % 5 != 0)
    expected = ahead[:, None] * psi[following, chosen]
    np.testing.assert_allclose(found.psi, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.q, expected @ w, rtol=1e-4, atol=1e-5)
    assert len(set(chosen[following == 1])) == 2  # one state, two draws, two choices


def test_options_name_the_parts_that_they_say():
    assert SU(policy="joint", policy_samples=7, policy_scale=0.5).reference() == Joint(7, 0.5)
    assert SU(policy="marginal").reference() == Marginal(20, 1.0)
    assert SU(policy="per_example", policy_scale=0.1).reference() == PerExample(0.1)


@pytest.mark.parametrize("trains_phi", [True, False])
def test_learning_takes_a_step_on_equation_4_with_the_loss_of_the_options(state, trains_phi):
    found = {}
    for loss in ("squared", "smooth_l1"):
        agent = dataclasses.replace(SMALL, loss=loss, successor_trains_phi=trains_phi)

        @jax.jit
        def both(state, key, agent=agent, loss=loss):
            def objective(outputs):
                targets = agent.targets(state, BATCH, key)
                return Equation4(loss, trains_phi)(BATCH, targets, outputs)

            by_hand = state.model.fit(BATCH.obs, BATCH.action, objective)
            learnt, update = agent.learn(state, BATCH, key)
            return (learnt.model, update), by_hand

        ours, by_hand = both(state, jax.random.key(0))
        for one, other in zip(*map(jax.tree.leaves, (ours, by_hand)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)
        # ŵ is still 0, so that only the successor loss has a gradient in φ.
        phi = [model.phi(BATCH.obs, BATCH.action) for model in (state.model, ours[0])]
        assert np.array_equal(*phi) != trains_phi
        found[loss] = ours[1].metrics["successor_loss"]
    assert found["squared"] > 2 * found["smooth_l1"]  # summed over features, averaged


def test_the_schedule_is_what_the_options_say():
    options = {"gradient_steps": 3, "train_every": 4, "warmup": 5, "redraw_every": 6}
    agent = SU(**options, batch_size=7, replay_capacity=8, discount=0.5)
    assert agent.schedule == Schedule(3, 4, 5, 1, 6, 7, 8, "uniform", 1, 0.5)


def test_options_of_tables_change_what_they_say():
    def phi(**options):
        model = begun(dataclasses.replace(SMALL, **options), SPEC).model
        return np.asarray(compiled(model.phi)(jnp.arange(4), jnp.array([0, 1, 0, 1]))), model

    one, model = phi()
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, rtol=1e-5)
    free, _ = phi(normalise="none")
    lengths = np.linalg.norm(free, axis=1, keepdims=True)
    assert np.ptp(lengths) > 0.01
    np.testing.assert_allclose(free / lengths, one, rtol=1e-4, atol=1e-5)
    two, deeper = phi(layers="two", normalise="none")
    hidden = np.asarray(deeper.rows.packed[:, 6:9], np.float64)  # U, after ψ of two actions
    V = np.asarray(deeper.shared.action, np.float64)[[0, 1, 0, 1]]
    np.testing.assert_allclose(two, np.einsum("sd,sdm->sm", hidden, V), rtol=1e-4)
    np.testing.assert_array_equal(model.psi(jnp.arange(4)), 1.0)
    np.testing.assert_array_equal(phi(psi_init=0.25)[1].psi(jnp.arange(4)), 0.25)


@pytest.mark.parametrize("rate", [1e-3, 1e-2])
def test_adam_s_first_step_is_the_learning_rate(rate):
    agent = dataclasses.replace(SMALL, learning_rate=rate)
    before = begun(agent, SPEC)
    after, _ = jax.jit(agent.learn)(before, BATCH, jax.random.key(0))
    moved = np.abs(np.asarray(after.model.psi(jnp.int32(0)) - before.model.psi(jnp.int32(0))))
    np.testing.assert_allclose(moved, rate, rtol=1e-3)
    np.testing.assert_allclose(np.abs(after.model.w), rate, rtol=1e-3)


@pytest.mark.usefixtures("optimised")
def test_learning_brings_reward_successor_and_q_where_they_belong():
    """Two states in a row, reward one at the end: r̂ → r, ψ → φ + γψ', Q → γ and 1."""
    # Nothing is uncertain with θ this small, and π takes the only action that has a value.
    agent = SU(features=6, theta=1e-10, discount=0.9, learning_rate=1e-2, psi_init=0.0)
    batch = transition([0, 1], [0, 0], [0.0, 1.0], [1, 2], [False, True])

    @jax.jit
    def trained(key):
        def step(state, key):
            state, update = agent.learn(state, batch, key)
            return state, update.metrics

        return jax.lax.scan(step, agent.init(SPEC, key), jax.random.split(key, 4000))

    state, metrics = trained(jax.random.key(0))
    q = agent.q(state, agent.greedy(state), jnp.arange(2))
    np.testing.assert_allclose(q[:, 0], [0.9, 1.0], atol=0.02)
    np.testing.assert_array_equal(q[:, 1], 0)  # never taken
    phi = np.asarray(state.model.phi(batch.obs, batch.action))
    psi = np.asarray(state.model.psi(batch.obs))[:, 0]
    np.testing.assert_allclose(psi[1], phi[1], atol=0.05)
    np.testing.assert_allclose(psi[0], phi[0] + 0.9 * psi[1], atol=0.05)
    assert all(float(losses[-1]) < 2e-3 for losses in metrics.values())


def test_options_of_networks_change_what_they_say():
    obs, action = observations(IMAGES, 4), jnp.arange(4) % 3
    plain = begun(dataclasses.replace(NET, psi_relu=False), IMAGES).model
    relu = begun(NET, IMAGES).model  # from the same key, so with the same weights
    psi = np.asarray(compiled(plain.psi)(obs))
    np.testing.assert_allclose(compiled(relu.psi)(obs), np.maximum(psi, 0), rtol=1e-4, atol=1e-5)
    assert psi.min() < 0.5 < psi.mean()  # about psi_init = 1
    together = begun(dataclasses.replace(NET, normalise="together"), IMAGES).model
    every = [compiled(together.phi)(obs, jnp.full(4, a)) for a in range(3)]
    np.testing.assert_allclose(np.sum(np.square(every), axis=(0, 2)), 1.0, rtol=1e-5)
    np.testing.assert_allclose(
        np.linalg.norm(compiled(plain.phi)(obs, action), axis=1), 1, rtol=1e-5
    )
    wider = begun(dataclasses.replace(NET, hidden=24, target_every=7, max_norm=3.0)).model.trained
    assert len(wider.net.torso.layers[-1].bias) == 24
    assert (wider.target_every, wider.adam.max_norm) == (7, 3.0)


@pytest.mark.parametrize("preset", ["text", "released"])
def test_the_paper_s_targets_have_no_bounds(preset):
    agent = dataclasses.replace(SU.preset("atari", preset), hidden=16, features=5)
    state, w = begun(agent), 1e3 * jnp.ones(5)
    where = lambda s: (s.model.trained.net.w, s.model.trained.target.w)  # noqa: E731
    state = eqx.tree_at(where, state, (w, w + 0.0))
    data = drawn(VECTOR)
    found = jax.jit(agent.targets)(state, data, jax.random.key(0))
    assert np.max(found.q) > 1 / (1 - agent.discount)  # though no reward has been seen
