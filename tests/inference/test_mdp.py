"""The sparse empirical MDP against counting by hand and against a dense solution."""

import jax.numpy as jnp
import numpy as np

from surveyor.inference.mdp import FREE, EmpiricalMDP
from surveyor.types import EnvSpec, Transition

SPEC = EnvSpec(num_states=3, num_actions=2, horizon=4)


def transitions(rows):
    obs, action, reward, following, ended = (np.array(column) for column in zip(*rows, strict=True))
    return Transition(
        jnp.asarray(obs, jnp.int32),
        jnp.asarray(action, jnp.int32),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(following, jnp.int32),
        jnp.asarray(ended, bool),
    )


def test_it_counts_successors_visits_and_rewards():
    seen = transitions(
        [(0, 1, 1.0, 2, False), (0, 1, 3.0, 1, False), (0, 1, 0.0, 2, False), (2, 0, 5.0, 0, True)]
    )
    model = EmpiricalMDP.empty(SPEC, slots=2).add(seen, jnp.ones(4, bool))
    np.testing.assert_array_equal(model.successor[0, 1], [2, 1])
    np.testing.assert_array_equal(model.count[0, 1], [2, 1])
    np.testing.assert_array_equal(model.visits, [[0, 3], [0, 0], [1, 0]])
    np.testing.assert_allclose(model.mean_reward[0, 1], 4 / 3, rtol=1e-6)
    assert model.successor[2, 0, 0] == 3  # the end
    assert np.all(np.asarray(model.successor[1]) == FREE)


def test_a_masked_transition_is_not_counted_and_a_full_row_counts_as_unknown():
    seen = transitions([(0, 0, 0.0, 1, False), (0, 0, 0.0, 2, False), (1, 1, 9.0, 2, False)])
    model = EmpiricalMDP.empty(SPEC, slots=1).add(seen, jnp.array([True, True, False]))
    np.testing.assert_array_equal(model.count[0, 0], [1])
    assert model.visits[0, 0] == 2
    np.testing.assert_allclose(model.frequencies[0, 0], [0.5])
    assert model.visits[1, 1] == 0


def random_model(rng, n=6, actions=3):
    rows = []
    for _ in range(200):
        s, a = rng.integers(n), rng.integers(actions)
        rows.append((s, a, rng.normal(), rng.integers(n), rng.random() < 0.2))
    spec = EnvSpec(num_states=n, num_actions=actions, horizon=5)
    return EmpiricalMDP.empty(spec, slots=n + 1).add(transitions(rows), jnp.ones(200, bool))


def dense(model):
    """P[s, a, s'] with the end as the last state, in float64."""
    n, actions, slots = model.successor.shape
    P = np.zeros((n, actions, n + 1))
    for s in range(n):
        for a in range(actions):
            for slot in range(slots):
                if model.successor[s, a, slot] != FREE:
                    P[s, a, model.successor[s, a, slot]] += model.frequencies[s, a, slot]
    return P


def test_solve_is_value_iteration_for_exactly_the_horizon():
    rng = np.random.default_rng(0)
    model = random_model(rng)
    P, r = dense(model), np.asarray(model.mean_reward, float)
    for horizon in (1, 2, 5):
        q = np.zeros_like(r)
        for _ in range(horizon):
            q = r + 0.9 * P @ np.append(q.max(1), 0.0)
        ours = model.solve(
            model.mean_reward, model.frequencies, lambda q: jnp.max(q, axis=0), 0.9, horizon
        )
        np.testing.assert_allclose(ours, q, rtol=1e-4, atol=1e-5)
