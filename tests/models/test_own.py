"""Networks of a user's own in every loop: trained, saved, resumed, evaluated."""

import functools
import json

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import surveyor as sv
from surveyor.agents.options import refuse_unread
from surveyor.errors import SurveyorError
from surveyor.models.own import Own
from surveyor.runs.config import Config
from surveyor.types import EnvSpec

QUICK = {"batch_size": 8, "warmup": 20, "envs": 2, "train_every": 4, "gradient_steps": 1}
QUICK |= {"replay_capacity": 200}


class Small(eqx.Module):
    """A convolution and a layer, with an activation and a count that are no weights."""

    convolution: eqx.nn.Conv2d
    layer: eqx.nn.Linear
    calls: jax.Array
    mean: np.ndarray
    activation: object

    def __init__(self, key, width=12):
        first, second = jax.random.split(key)
        self.convolution = eqx.nn.Conv2d(4, 6, 3, key=first)
        self.layer = eqx.nn.Linear(6 * 8 * 8, width, key=second)
        self.calls, self.mean = jnp.arange(3), np.zeros(width, np.float32)
        self.activation = jax.nn.tanh

    def __call__(self, obs):
        hidden = jax.nn.relu(self.convolution(jnp.moveaxis(obs, -1, 0)))
        return self.activation(self.layer(hidden.reshape(-1)) - self.mean + 0 * self.calls[0])


class Table(eqx.Module):
    """An embedding of numbered states."""

    rows: jax.Array

    def __call__(self, state):
        return jax.nn.relu(self.rows[state])


class Boards(gymnasium.Env):
    """Pictures of MinAtar's size, drawn by the seed."""

    observation_space = spaces.Box(0, 1, (10, 10, 4), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._see(), {}

    def step(self, action):
        return self._see(), float(action), bool(self.np_random.random() < 0.1), False, {}

    def _see(self):
        return self.np_random.integers(0, 2, (10, 10, 4)).astype(np.uint8)


def torso(seed=0, **options):
    return Small(jax.random.key(seed), **options)


def agents():
    yield "su-plus", sv.SUPlus(torso=torso(), **QUICK)
    yield "dqn", sv.DQN(torso=torso(), duelling=True, **QUICK)
    yield "bdqn", sv.BDQN(torso=torso(), **QUICK)


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


class Stop(sv.Callback):
    def record(self, run, record):
        if run.progress >= run.config.budget / 4:
            run.stop("enough")


@pytest.mark.parametrize("agent", [one for _, one in agents()], ids=[name for name, _ in agents()])
def test_every_agent_trains_a_torso_of_the_user_s_own(agent):
    run = sv.train(agent, Boards, steps=120)
    nets = [leaf for leaf in jax.tree.leaves(run.state, is_leaf=_is_torso) if _is_torso(leaf)]
    assert nets[0].width == 12
    assert not np.array_equal(nets[0].module.layer.weight, torso().layer.weight)
    np.testing.assert_array_equal(nets[0].module.calls, [0, 1, 2])  # whole numbers are not trained
    assert sv.evaluate(run, 2).returns
    assert run.q_posterior(Boards().reset(seed=0)[0]).mean.shape == (1, 3)


def _is_torso(leaf):
    return type(leaf).__name__ == "OwnTorso"


@pytest.mark.parametrize("where", ["host", "compiled", "episodes"])
def test_it_is_saved_and_resumed_to_the_same_bits_in_all_three_loops(where, tmp_path):
    if where == "episodes":
        rows = jax.random.normal(jax.random.key(1), (21, 8))
        options = {"target_every": 20, "gradient_steps": 2}
        agent, env = sv.SUPlus(torso=Table(rows), **options), "Tree-10"
        length, more = {"episodes": 40, "stop_when_solved": False}, {}
    else:
        agent = sv.SUPlus(torso=torso(), **QUICK)
        env = "MinAtar/Breakout" if where == "compiled" else Boards
        length, more = {"steps": 240}, {} if where == "compiled" else {"env": Boards}
    whole = sv.train(agent, env, **length)
    part = sv.train(agent, env, **length, out=tmp_path, callbacks=[Stop()])
    assert not part.finished
    again = sv.resume(part.folder.path, agent=agent, **more)
    assert again.finished
    assert same(whole.loop, again.loop)
    assert same(sv.load(again.folder.path, agent=agent, **more).state, whole.state)
    assert len(sv.evaluate(again, 2).returns) == 2


def test_a_run_says_which_module_it_needs_and_any_weights_of_it_will_do(tmp_path):
    run = sv.train(sv.DQN(torso=torso(), **QUICK), Boards, steps=60, out=tmp_path)
    config = json.loads((run.folder.path / "config.json").read_text())
    assert config["hyperparameters"]["torso"]["module"] == f"{__name__}:Small"
    with pytest.raises(
        SurveyorError, match=r"The torso of '.*' is a module of its own, .*Small: gi"
    ):
        sv.load(run.folder.path, env=Boards)
    other = sv.DQN(torso=torso(seed=7), **QUICK)
    loaded = sv.load(run.folder.path, env=Boards, agent=other)
    assert same(loaded.state, run.state)
    for wrong in (sv.DQN(torso=torso(width=10), **QUICK), sv.DQN(torso="minatar", **QUICK)):
        with pytest.raises(SurveyorError, match="is not the one that this run was trained with"):
            sv.load(run.folder.path, env=Boards, agent=wrong)
    again = sv.train(other, Boards, steps=60, out=tmp_path)
    assert again.folder.path != run.folder.path  # other weights, another run
    records = {record["name"]: record for record in sv.results(tmp_path)}
    assert records[run.folder.path.name]["agent.torso"].startswith("Small(")


class Bent(eqx.Module):
    mlp: eqx.nn.MLP

    def __init__(self, bend):
        self.mlp = eqx.nn.MLP(2, 8, 8, 1, bend, key=jax.random.key(0))

    def __call__(self, obs):
        return self.mlp(obs)


def test_functions_in_a_module_decide_the_result_too():
    def leaky(slope):
        return functools.partial(jax.nn.leaky_relu, negative_slope=slope)

    def scaled(factor):
        return lambda x: factor * x

    pairs = [(leaky(0.1), leaky(0.9)), (lambda x: 2 * x, lambda x: 3 * x)]
    pairs += [(scaled(2), scaled(3)), (jax.nn.relu, jax.nn.tanh)]
    for one, other in pairs:
        digests = [Config("x", sv.DQN(torso=Bent(f)), 0, steps=5).digest() for f in (one, other)]
        assert digests[0] != digests[1]
        assert Own(Bent(one)) != Own(Bent(other))
    assert Own(Bent(leaky(0.1))).same_structure(Own(Bent(leaky(0.1))).description)


def test_modules_are_compared_by_what_they_are():
    assert Own(torso()) == Own(torso())
    assert hash(Own(torso())) == hash(Own(torso()))
    assert Own(torso()) != Own(torso(seed=1))
    assert sv.DQN(torso=torso()) == sv.DQN(torso=torso())
    assert Own(torso()).same_structure(json.loads(json.dumps(Own(torso(seed=1)).description)))
    assert not Own(torso()).same_structure(Own(torso(width=5)).description)


class Wrong(eqx.Module):
    def __call__(self, obs):
        return jnp.zeros((2, 3))


class Broken(eqx.Module):
    def __call__(self, obs):
        return jnp.zeros((4, 4)) @ obs


def test_a_torso_that_does_not_fit_is_refused_in_one_sentence():
    spec = EnvSpec(0, 3, 0, (10, 10, 4), "bool")
    said = (
        r"torso Wrong must map one observation of shape \(10, 10, 4\) to a vector of floats, not to"
    )
    with pytest.raises(SurveyorError, match=said):
        sv.DQN(torso=Wrong()).init(spec, jax.random.key(0))
    with pytest.raises(
        SurveyorError, match=r"torso Broken failed on one observation of shape \(10"
    ):
        sv.DQN(torso=Broken()).init(spec, jax.random.key(0))
    with pytest.raises(SurveyorError, match="Duelling heads need a vector of even length"):
        sv.DQN(torso=torso(width=5), duelling=True).init(spec, jax.random.key(0))
    with pytest.raises(SurveyorError, match=r"Give a module as torso, Wrong\(...\), not its class"):
        sv.DQN(torso=Wrong)
    empty = eqx.nn.Lambda(lambda obs: jnp.zeros(0))
    with pytest.raises(SurveyorError, match=r"vector of floats, not to shape \(0,\) of float32"):
        sv.DQN(torso=empty).init(spec, jax.random.key(0))
    with pytest.raises(SurveyorError, match="A torso is a name or an Equinox module"):
        sv.DQN(torso=lambda obs: obs)
    with pytest.raises(
        SurveyorError, match="torso must be one of auto, mlp, minatar, board, nature"
    ):
        sv.DQN(torso="conv")
    agent = sv.DQN(torso=torso(), depth=3)
    with pytest.raises(SurveyorError, match="depth has no effect here: it needs a torso by name"):
        refuse_unread(agent, sv.agents.options.Setting(False, False), "x")


def test_named_torsos_have_a_depth_and_a_width():
    spec = EnvSpec(0, 3, 0, (4,), "float32")
    net = sv.DQN(torso="mlp", depth=3, hidden=16).init(spec, jax.random.key(0)).network.trained.net
    assert [layer.weight.shape for layer in net.torso.layers] == [(16, 4), (16, 16), (16, 16)]
    image = EnvSpec(0, 3, 0, (10, 10, 4), "bool")
    net = sv.DQN(depth=2, hidden=16).init(image, jax.random.key(0)).network.trained.net
    assert [layer.weight.shape for layer in net.torso.layers] == [(16, 1024), (16, 16)]


def test_duelling_heads_are_value_plus_advantage():
    spec = EnvSpec(0, 3, 0, (4,), "float32")
    network = sv.BootDQN(duelling=True, hidden=8, ensemble=2).init(spec, jax.random.key(0)).ensemble
    net, obs = (
        network.trained.net,
        jnp.asarray(np.random.default_rng(0).random((5, 4)), jnp.float32),
    )
    hidden = np.asarray(
        net.torso(obs)
    ).T  # 16 wide: a stream of 8 for the value, one for advantages
    value = hidden[:, :8] @ np.asarray(net.V)
    advantage = np.einsum("bh,hka->bka", hidden[:, 8:], np.asarray(net.W).reshape(8, 2, 3))
    by_hand = value[:, :, None] + advantage - advantage.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(network.q(obs), by_hand, atol=1e-5)
    np.testing.assert_allclose(
        np.einsum("bh,kha->bka", hidden, np.asarray(network.weights)), by_hand, atol=1e-5
    )
