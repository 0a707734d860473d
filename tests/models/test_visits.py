"""Counts of visits, beside a dictionary; numbers that belong to cells."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.visits import ALONE, BITS, TABLES, Visits
from surveyor.types import EnvSpec, Transition

NUMBERS = EnvSpec(num_states=30, num_actions=3)
VECTOR = EnvSpec(0, 3, 0, (4,), "float32")
IMAGE = EnvSpec(0, 3, 0, (6, 5, 2), "uint8")
FLAGS = EnvSpec(0, 3, 0, (8, 8), "bool")


def observations(spec, n, rng):
    """Return observations of which many are equal."""
    if spec.tabular:
        return rng.integers(0, spec.num_states, n).astype(np.int32)
    few = rng.integers(0, 2 if spec.dtype == "bool" else 9, (n // 4, *spec.shape))
    if spec.dtype == "float32":
        few = few / 4 - 1
    return few[rng.integers(0, len(few), n)].astype(spec.dtype)


@pytest.mark.parametrize(
    "spec", [NUMBERS, VECTOR, IMAGE, FLAGS], ids=["numbers", "vector", "image", "flags"]
)
def test_visits_are_counted_as_by_a_dictionary(spec):
    rng, counted = np.random.default_rng(0), collections.Counter()
    visits = Visits.create(spec, jax.random.key(0), bins=20 if spec is not VECTOR else 80)
    add = jax.jit(lambda visits, steps, mask: visits.add(steps, mask))
    for _ in range(5):
        obs, action = observations(spec, 40, rng), rng.integers(0, 3, 40)
        mask = rng.random(40) < 0.8
        arrays = map(jnp.asarray, (obs, action, np.zeros(40, np.float32), obs, np.zeros(40, bool)))
        before = counted.copy()
        visits, first = add(visits, Transition(*arrays), jnp.asarray(mask))
        new = [m and not before[o.tobytes(), a] for o, a, m in zip(obs, action, mask, strict=True)]
        np.testing.assert_array_equal(first, new)
        counted.update((o.tobytes(), a) for o, a, m in zip(obs, action, mask, strict=True) if m)
    found = np.asarray(visits.at(visits.codes(jnp.asarray(obs))))
    assert found.shape == (40, 5 if spec is VECTOR else 1, 3)
    found = found[:, -1]
    expected = [[counted[o.tobytes(), a] for a in range(3)] for o in obs]
    np.testing.assert_array_equal(found, expected)
    assert found.max() > 1
    one = visits.codes(jnp.asarray(obs[0]))
    np.testing.assert_array_equal(one, visits.codes(jnp.asarray(obs))[0])


def test_what_was_never_met_is_never_known_among_thousands():
    visits = Visits.create(EnvSpec(0, 2, 0, (60, 60), "bool"), jax.random.key(1), bins=20)
    places = np.eye(3_600, dtype=bool).reshape(-1, 60, 60)
    known, new = jnp.asarray(places[:1_800]), jnp.asarray(places[1_800:])
    none, flags = jnp.zeros(1_800), jnp.zeros(1_800, bool)
    for action in range(2):
        steps = Transition(known, jnp.full(1_800, action), none, known, flags)
        visits, _ = visits.add(steps, jnp.ones(1_800, bool))
    assert not np.asarray(visits.at(visits.codes(new))).any()
    np.testing.assert_array_equal(visits.at(visits.codes(known)), 1)
    alone = np.asarray(visits.count[0, visits._first(visits.codes(new))[0]])
    assert alone.any()  # in one table some would be


def test_real_numbers_share_a_cell_if_they_are_close():
    visits = Visits.create(VECTOR, jax.random.key(0), bins=80)
    obs = jnp.array([[0.5, -0.5, 0.0, 1.0], [0.51, -0.51, 0.01, 1.0], [0.5, -0.5, 0.0, 0.9]])
    codes = np.asarray(visits.codes(obs))[:, -1]
    assert codes[0] == codes[1]
    assert codes[0] != codes[2]


def test_a_vector_is_seen_number_by_number_and_as_a_whole():
    visits = Visits.create(VECTOR, jax.random.key(0), bins=8)
    np.testing.assert_array_equal(visits.bins[:, 0], [8, 8, 8, 8, 2])
    apart = jnp.array([0.04, 0.11, 0.2, 0.3])  # from 0, along one axis
    obs = jnp.zeros((5, 4)).at[1:, 1].set(apart)
    codes = np.asarray(visits.codes(obs))
    assert len(np.unique(codes[0])) == 5
    same = codes[1:] == codes[:1]
    fine, whole = [True, False, False, False], [True, True, True, False]
    np.testing.assert_array_equal(same[:, 1], fine)
    np.testing.assert_array_equal(same[:, 4], whole)
    assert same[:, [0, 2, 3]].all()
    step = Transition(obs[:1], jnp.array([2]), jnp.zeros(1), obs[:1], jnp.zeros(1, bool))
    visits, first = visits.add(step, jnp.ones(1, bool))
    assert first.all()
    np.testing.assert_array_equal(visits.at(visits.codes(obs))[1:, :, 2], same)
    np.testing.assert_array_equal(visits.of(visits.codes(obs), jnp.full(5, 2))[1:], same)
    np.testing.assert_array_equal(visits.of(visits.codes(obs), jnp.full(5, 1)), 0)
    near = dataclasses.replace(step, obs=obs[3:4])  # new to the number alone
    assert not visits.add(near, jnp.ones(1, bool))[1].any()
    np.testing.assert_array_equal(
        Visits.create(VECTOR, jax.random.key(0), bins=1).bins, np.ones((5, 1))
    )
    for spec in (NUMBERS, IMAGE, FLAGS):
        assert len(Visits.create(spec, jax.random.key(0), bins=8).bins) == 1


def test_a_long_vector_has_a_bounded_number_of_views_each_number_in_one_of_them():
    spec = EnvSpec(0, 2, 0, (50,), "float32")
    visits = Visits.create(spec, jax.random.key(0), bins=8)
    assert visits.multipliers is not None
    shares = np.asarray(visits.multipliers) > 0
    assert shares.shape == (ALONE + 1, 50)
    np.testing.assert_array_equal(shares[:-1].sum(0), 1)
    assert shares[:-1].sum(1).max() == 4
    assert shares[-1].all()
    assert visits.count.shape == (TABLES, 2**BITS + 1)  # as for any other observation


def test_numbers_of_cells_are_uniform_independent_and_always_the_same():
    codes = jnp.arange(10_000, dtype=jnp.uint32)
    visits, other = (Visits.create(NUMBERS, jax.random.key(i), bins=1) for i in range(2))
    found = np.asarray(visits.uniforms(codes, 4))
    of_another = np.asarray(other.uniforms(codes, 4))  # numbered states, another seed
    assert abs(np.corrcoef(found.ravel(), of_another.ravel())[0, 1]) < 0.02
    assert found.shape == (10_000, 3, 4)
    np.testing.assert_array_equal(found[5:7], visits.uniforms(codes[5:7], 4))
    counts = np.histogram(found, bins=10, range=(0, 1))[0] / found.size
    np.testing.assert_allclose(counts, 0.1, atol=0.003)
    flat = found.transpose(2, 0, 1).reshape(4, -1)
    both = np.corrcoef(np.concatenate([flat[:, :-1], flat[:, 1:]]))
    assert np.abs(both - np.eye(8)).max() < 0.025
