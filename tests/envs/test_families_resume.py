"""Runs on any family resume to the same bits, with a torso or an agent of the user's own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import surveyor as sv

NAMES = (
    "DeepSea-5",
    "DeepSea-5-stochastic",
    "bsuite/catch/0",
    "MiniGrid-Empty-5x5-v0",
    "gymnax/Catch-bsuite",
    "Navix-Empty-5x5-v0",
    "Craftax-Classic-Symbolic-v1",
)
SOON = {("DeepSea-5", "torso"), ("MiniGrid-Empty-5x5-v0", "torso"), ("bsuite/catch/0", "agent")}
SOON |= {("gymnax/Catch-bsuite", "agent")}
"""Cases of every test run; the others take long to compile."""
CASES = [
    pytest.param(name, own, marks=() if (name, own) in SOON else pytest.mark.slow)
    for name in NAMES
    for own in ("torso", "agent")
]
QUICK = {"batch_size": 8, "warmup": 20, "envs": 2, "train_every": 4, "gradient_steps": 1}
QUICK |= {"replay_capacity": 500, "replay": "uniform", "ensemble": 4, "discount": 0.9}


class Pooled(eqx.Module):
    """A torso for observations of any shape: waves of their mean and of a weighted sum."""

    weights: jax.Array

    def __call__(self, obs):
        flat = obs.reshape(-1)
        total = jnp.sum(flat * jnp.linspace(-1, 1, flat.size))
        return jnp.cos(self.weights[0] * jnp.mean(flat) + self.weights[1] * total)


class LineState(eqx.Module):
    weights: jax.Array
    steps: jax.Array


class Line(sv.Agent[LineState, jax.Array]):
    """Linear Q-learning on any observation, with noise on the weights as its index."""

    rate: float = 0.01
    noise: float = 0.1

    @property
    def schedule(self):
        return sv.Schedule(updates=1, every=4, warmup=20, envs=2, batch_size=8, capacity=500)

    def init(self, spec, key):
        size = int(np.prod(spec.shape))
        return LineState(jnp.zeros((size, spec.num_actions)), jnp.zeros((), jnp.int32))

    def sample(self, state, key):
        return self.noise * jax.random.normal(key, state.weights.shape)

    def greedy(self, state):
        return jnp.zeros_like(state.weights)

    def q(self, state, index, obs):
        lead = obs.size // len(state.weights)
        q = obs.reshape(lead, -1).astype(jnp.float32) @ (state.weights + index)
        return q[0] if lead == 1 else q

    def observe(self, state, transitions, mask):
        return LineState(state.weights, state.steps + jnp.sum(mask))

    def learn(self, state, batch, key):
        flat = batch.obs.reshape(len(batch.action), -1).astype(jnp.float32)
        after = batch.next_obs.reshape(len(batch.action), -1).astype(jnp.float32)
        target = batch.reward + 0.9 * jnp.max(after @ state.weights, axis=1) * ~batch.terminated
        taken = jax.nn.one_hot(batch.action, state.weights.shape[1])
        error = (target - jnp.sum(flat @ state.weights * taken, axis=1))[:, None] * taken
        return LineState(state.weights + self.rate * flat.T @ error / 8, state.steps), sv.Update()


class Stop(sv.Callback):
    def record(self, run, record):
        if run.progress >= run.config.budget / 3:
            run.stop("for the test")


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(("name", "own"), CASES)
def test_a_run_resumes_to_the_same_bits(name, own, tmp_path):
    torso = Pooled(jax.random.normal(jax.random.key(0), (2, 10)))
    agent = Line() if own == "agent" else sv.SUPlus(torso=torso, **QUICK)
    given = {} if own == "agent" else {"agent": agent}
    whole = sv.train(agent, name, steps=240, seed=3)
    part = sv.train(agent, name, steps=240, seed=3, out=tmp_path, callbacks=[Stop()])
    assert not part.finished
    again = sv.resume(part.folder.path, **given)
    assert again.finished
    assert same(whole.loop, again.loop)
    assert whole.result["episodes"] == again.result["episodes"]
    assert sv.evaluate(again, 1).returns == sv.evaluate(whole, 1).returns
