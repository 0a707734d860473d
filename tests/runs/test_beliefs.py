"""What an agent believes is written down as it is, and costs the run nothing but time."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import surveyor as sv
from surveyor.runs import recorder
from surveyor.runs.folder import RunFolder
from surveyor.training import beliefs


def train(out, agent="su-plus", env="Tree-5", episodes=40, **more):
    return sv.train(agent, env, episodes=episodes, stop_when_solved=False, out=out, **more)


def files(folder):
    return {path.name: path.read_bytes() for path in (folder / "beliefs").iterdir()}


def test_a_look_is_the_posterior_of_the_run(tmp_path):
    run = train(tmp_path, "su", beliefs=True)
    folder = RunFolder(run.folder.path)
    assert folder.snapshot_times() == [0, 10, 20, 30, 40]
    first, last = recorder.read(folder, 0), recorder.read(folder, 40)
    assert first["visits"].sum() == 0
    assert last["visits"].sum() == sum(sum(r["lengths"]) for r in run.metrics)
    path = 2 * np.arange(5)
    good = np.asarray(sv.envs.make("Tree-5", 0)[1].mapping)
    joint = run.q_posterior(path)
    mean = np.asarray(joint.mean)[np.arange(5), good]
    place = 2 * np.arange(5) + good
    covariance = np.asarray(joint.covariance, np.float64)
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(last["mean"][:, 0], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last["std"][:, 0], std[place], rtol=1e-3)
    other = 2 * np.arange(5) + 1 - good
    gap = mean - np.asarray(joint.mean)[np.arange(5), 1 - good]
    alone = np.sqrt(std[place] ** 2 + std[other] ** 2)
    spread = np.sqrt(alone**2 - 2 * covariance[place, other])
    np.testing.assert_allclose(last["probability"], norm.cdf(gap / spread), atol=2e-3)
    np.testing.assert_allclose(
        last["log10_factorised"], np.sum(np.log10(norm.cdf(gap / alone))), rtol=1e-3
    )
    along = covariance[place][:, place] / np.outer(std[place], std[place])
    np.testing.assert_allclose(last["correlation"], along, atol=2e-3)
    assert last["paths"].shape == (beliefs.PATHS, 5)
    assert set(np.unique(last["paths"])) <= {-1, 0, 2, 4, 6, 8}
    whole = np.all(last["paths"] >= 0, axis=1)  # a policy may still fail at the last step
    assert np.all(whole[last["succeeded"]])
    assert first["succeeded"].sum() < last["succeeded"].sum()


def test_sampled_policies_are_independent_and_chances_of_many_samples(tmp_path):
    for agent, samples in (
        ("su", beliefs.PATH_SAMPLES),
        ("su-plus", sv.SUPlus().ensemble),
        ("psrl", beliefs.SAMPLES),
        ("uniform", None),
    ):
        run = train(tmp_path, agent, "Tree-8", episodes=10, beliefs=True)
        look = recorder.read(run.folder, 0)
        assert len(np.unique(look["paths"], axis=0)) > 1, agent  # all is a tie
        assert samples in (None, int(look["joint_samples"]))


def test_every_look_of_every_agent_is_of_numbers_and_agrees_with_the_library(tmp_path):
    for agent in ("su", "su-plus", "ube", "bdqn", "bootdqn", "dqn"):
        run = train(tmp_path, agent, "Chain-5", episodes=20, beliefs=True)
        for at in run.folder.snapshot_times():
            for name, found in recorder.read(run.folder, at).items():
                assert np.all(np.isfinite(found.astype(float))), (agent, name, at)
        last, env = recorder.read(run.folder, 20), sv.envs.make("Chain-5")[0]
        states = jnp.asarray(env.layout(beliefs.SIDE).states, jnp.int32)
        belief, good = run.q_posterior(states), np.asarray(env.good(env.params(0), states))
        both = np.stack([good, 1 - good], axis=1)
        mean = np.take_along_axis(np.asarray(belief.mean), both, axis=1)
        std = np.sqrt(np.diagonal(np.asarray(belief.covariance))).reshape(-1, 2)
        np.testing.assert_allclose(last["mean"], mean, atol=1e-5, err_msg=agent)
        np.testing.assert_allclose(
            last["std"], np.take_along_axis(std, both, axis=1), atol=1e-4, err_msg=agent
        )


def test_looking_changes_nothing_and_a_stopped_run_looks_the_same(tmp_path):
    plain = train(tmp_path / "plain")
    whole = train(tmp_path / "whole", beliefs=True)
    assert whole.metrics == plain.metrics
    assert not RunFolder(plain.folder.path).snapshots_enabled

    class Stop(Exception):  # noqa: N818
        pass

    def stop(run):
        if run.loop.episode >= 20:
            run.checkpoint()
            raise Stop

    with pytest.raises(Stop):
        train(tmp_path / "parts", beliefs=True, report=stop)
    (path,) = (tmp_path / "parts").iterdir()
    sv.resume(path)
    assert files(path) == files(whole.folder.path)


@pytest.mark.parametrize("agent", ["psrl", "uniform"])
def test_agents_with_nothing_exact_to_say_are_asked_by_samples(tmp_path, agent):
    run = train(tmp_path, agent, "Chain-4", 20, beliefs=True)
    found = recorder.read(run.folder, 20)
    assert found["mean"].shape == found["std"].shape == (10, 2)
    assert np.all((found["probability"] >= 0) & (found["probability"] <= 1))
    assert 0 <= found["joint"] <= 1
    assert found["log10_factorised"] <= 0


def test_looking_takes_no_more_than_its_share(tmp_path, monkeypatch):
    run = train(tmp_path / "a", beliefs=True)
    monkeypatch.setattr(recorder, "FREE_SECONDS", -1.0)
    monkeypatch.setattr(recorder, "SHARE", 0.0)
    less = train(tmp_path / "b", beliefs=True)
    assert RunFolder(less.folder.path).snapshot_times() == [0, 40]
    last = "0000000040.npz"
    assert files(less.folder.path)[last] == files(run.folder.path)[last]


def test_a_small_state_is_kept_itself_until_somebody_looks(tmp_path, monkeypatch):
    run = train(tmp_path / "a", beliefs=True)
    folder = run.folder
    assert all(f"{recorder.RAW}0" in folder.read_snapshot(at) for at in folder.snapshot_times())
    looked = recorder.read(folder, 40)
    assert {"mean", "std", "correlation"} <= looked.keys()
    again = folder.read_snapshot(40)  # it was replaced
    assert again.keys() == looked.keys()
    monkeypatch.setattr(recorder, "RAW_BYTES", 0)
    computed = train(tmp_path / "b", beliefs=True).folder.read_snapshot(40)
    for name, value in computed.items():
        np.testing.assert_array_equal(looked[name], value, err_msg=name)


def test_the_state_of_another_agent_is_refused(tmp_path):
    run = train(tmp_path, beliefs=True)
    raw = run.folder.read_snapshot(40)
    run.folder.write_snapshot(40, {**raw, f"{recorder.RAW}0": np.zeros((3, 3), np.float32)})
    with pytest.raises(ValueError, match="another agent"):
        recorder.read(run.folder, 40)


class Named(sv.Uniform):
    """An agent that a report cannot make."""


def test_beliefs_of_other_peoples_agents_are_computed_while_they_train(tmp_path):
    run = train(tmp_path, Named(), beliefs=True)
    assert "mean" in run.folder.read_snapshot(40)


def test_a_look_that_fails_is_said_once_and_the_run_goes_on(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no room")

    monkeypatch.setattr(RunFolder, "write_snapshot", fail)
    with pytest.warns(UserWarning, match="no room") as warned:
        run = train(tmp_path, beliefs=True)
    assert run.finished
    assert len(warned) == 1


@pytest.mark.parametrize(("name", "count"), [("Chain-400", 134 * 135 // 2), ("Tree-300", 300)])
def test_a_picture_of_a_large_problem_has_some_of_its_states(name, count):
    env, _ = sv.envs.make(name, 0)
    layout = env.layout(beliefs.SIDE)
    assert layout is not None
    assert len(layout.states) == count
    rows, columns = env.place(layout.states)
    assert rows.max() < 400
    assert np.all(columns <= (rows if name == "Chain-400" else 300))
    assert len(layout.path) == env.size


def test_observations_are_asked_about_once_random_steps_are_over(tmp_path):
    agent = dataclasses.replace(
        sv.DQN.preset("classic"), hidden=4, warmup=100, envs=1, train_every=1
    )
    run = sv.train(agent, "CartPole-v1", steps=400, out=tmp_path, beliefs=True)
    folder = RunFolder(run.folder.path)
    assert folder.snapshot_times()[0] >= 100
    assert folder.snapshot_times()[-1] == 400
    obs = folder.read_snapshot(recorder.OBSERVED)["obs"]
    assert obs.shape == (beliefs.OBSERVATIONS, 4)
    last = folder.read_snapshot(400)
    q = run.agent.q(run.state, run.agent.greedy(run.state), jnp.asarray(obs))
    np.testing.assert_allclose(last["mean"], q, rtol=1e-4, atol=1e-5)
