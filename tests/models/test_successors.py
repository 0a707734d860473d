"""Models that wrap another: novelty features, and bounds on targets."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surveyor.models.successors import Bounded, BoundedModel, Novelty, Outputs, unit

PSI = np.arange(24.0, dtype=np.float32).reshape(4, 2, 3)


class Fixed(eqx.Module):
    """A model that knows ψ of four states, has φ(s, a) = (s + 1,) and remembers its last loss."""

    w: jax.Array
    seen: jax.Array
    scale: float = 1.0

    @property
    def target_w(self):
        return 2 * self.w

    def psi(self, obs):
        return jnp.asarray(PSI)[obs]

    def target_psi(self, obs):
        return self.scale * self.psi(obs)

    def phi(self, obs, action):
        return (obs + 1.0)[..., None] * jnp.ones(len(self.w))

    def fit(self, obs, action, loss):
        psi = self.psi(obs)[jnp.arange(len(obs)), action]
        value, found = loss(Outputs(psi, self.phi(obs, action), self.w))
        return eqx.tree_at(lambda model: model.seen, self, value), found


def novelty(step=0.25, trained=2):
    return Novelty(Fixed(jnp.array([5.0]), jnp.zeros(())), 2, step, trained)


def bounded(discount=0.9, rewards=(0.0, 0.0), scale=1.0):
    inner = Fixed(jnp.array([1.0, 0.0, -1.0]), jnp.zeros(()), scale)
    return Bounded(inner, jnp.array(rewards), discount)


def test_novelty_features_come_first_with_w_zero_and_one_phi_for_all():
    model, obs = novelty(), jnp.array([0, 3])
    np.testing.assert_array_equal(model.w, [0, 0, 5])
    np.testing.assert_array_equal(model.target_w, [0, 0, 10])
    np.testing.assert_array_equal(
        model.phi(obs, jnp.zeros(2, jnp.int32)), [[0.25, 0.25, 1], [0.25, 0.25, 4]]
    )
    np.testing.assert_array_equal(model.psi(obs), PSI[[0, 3]])
    np.testing.assert_array_equal(model.target_psi(obs), PSI[[0, 3]])


def test_a_loss_sees_all_features_and_how_many_are_trained():
    given = []

    def loss(outputs):
        given.append(outputs)
        return jnp.sum(outputs.psi), "found"

    model, found = novelty().fit(jnp.array([2]), jnp.array([1]), loss)
    np.testing.assert_array_equal(given[0].psi, PSI[2, 1][None])
    np.testing.assert_array_equal(given[0].phi, [[0.25, 0.25, 3.0]])
    np.testing.assert_array_equal(given[0].w, [0, 0, 5])
    assert given[0].trained == 2
    assert found == "found"
    assert model.inner.seen == PSI[2, 1].sum()
    assert (model.count, model.step, model.trained) == (2, 0.25, 2)


def test_tables_need_no_bounds():
    model = novelty()
    assert model.widen(jnp.array([9.0]), jnp.array([True])) is model
    np.testing.assert_array_equal(model.clip_q(jnp.array([-1e9, 1e9])), [-1e9, 1e9])


def test_target_features_are_no_longer_than_any_discounted_sum_of_unit_features():
    model, obs = bounded(0.9, scale=10.0), jnp.arange(4)
    target = np.asarray(model.target_psi(obs), np.float64)
    raw = 10.0 * PSI.astype(np.float64)
    norms = np.linalg.norm(raw, axis=-1, keepdims=True)
    np.testing.assert_allclose(target, raw * np.minimum(1, 10 / norms), rtol=1e-5)
    np.testing.assert_array_equal(model.psi(obs), PSI)  # acting is not bounded


def test_target_q_stays_within_what_the_rewards_so_far_can_add_up_to():
    q = jnp.array([-100.0, -5.0, 3.0, 100.0])
    np.testing.assert_array_equal(bounded().clip_q(q), 0.0)
    seen = bounded().widen(jnp.array([-1.0, 7.0, 3.0]), jnp.array([True, False, True]))
    np.testing.assert_allclose(seen.rewards, [-1, 3])
    np.testing.assert_allclose(seen.clip_q(q), [-10, -5, 3, 30], rtol=1e-5)
    more = seen.widen(jnp.array([2.0]), jnp.array([True]))
    np.testing.assert_array_equal(more.rewards, seen.rewards)


def test_without_a_discount_there_is_no_bound():
    model = bounded(1.0, scale=1e6)
    np.testing.assert_allclose(model.target_psi(jnp.arange(4)), 1e6 * PSI)
    np.testing.assert_array_equal(model.clip_q(jnp.array([-1e9, 1e9])), [-1e9, 1e9])


def test_fitting_keeps_the_bounds():
    model = bounded(0.9, (-1.0, 3.0))
    new, _ = model.fit(jnp.array([0]), jnp.array([1]), lambda out: (jnp.sum(out.psi), None))
    assert new.inner.seen == PSI[0, 1].sum()
    np.testing.assert_array_equal(new.rewards, model.rewards)
    assert new.discount == 0.9


@pytest.mark.parametrize("model", [novelty(), bounded()], ids=["novelty", "bounded"])
def test_both_wrappers_follow_the_protocol(model):
    assert isinstance(model, BoundedModel)


def test_a_unit_vector_of_nothing_is_nothing_and_has_a_gradient():
    phi = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(unit(phi), [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert np.all(np.isfinite(jax.grad(lambda phi: jnp.sum(unit(phi)))(phi)))
