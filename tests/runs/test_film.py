"""Films of episodes."""

import dataclasses
import gc
import warnings

import imageio.v3 as imageio
import numpy as np
import pytest

import surveyor as sv
from surveyor.errors import SurveyorError
from surveyor.runs import film


@pytest.fixture(scope="module")
def game():
    agent = dataclasses.replace(
        sv.SUPlus.preset("minatar"), hidden=16, warmup=64, replay_capacity=200
    )
    return sv.train(agent, "MinAtar/Breakout", steps=160)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_film_shows_every_observation_of_an_episode(game, tmp_path, suffix):
    seen = []
    film.watch(game, 0, lambda obs, picture, action: seen.append(picture()))
    path = film.write(game, tmp_path / "films" / f"breakout{suffix}")
    with warnings.catch_warnings():  # imageio's reader forks too, and leaves a pipe open
        warnings.simplefilter("ignore")
        frames = imageio.imread(path, index=None)
        gc.collect()
    assert len(frames) == len(seen) > 3
    assert frames.shape[1:3] == (320, 320)
    middle = frames[:, 16::32, 16::32, :3].astype(float)  # of each of its 10 × 10 squares
    assert np.mean(np.abs(middle - np.stack(seen))) < 20
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_classic_environment_is_drawn(tmp_path, capfd):
    run = sv.train("uniform", "CartPole-v1", steps=8)
    path = film.write(run, tmp_path / "pole.gif")
    assert path.stat().st_size > 1000
    assert capfd.readouterr().out == ""


def test_a_film_ends_where_it_would_be_too_long(game, tmp_path, monkeypatch):
    monkeypatch.setattr(film, "LONGEST", 3)
    path = film.write(game, tmp_path / "short.gif")
    assert len(imageio.imread(path, index=None)) == 3


def test_no_film_is_left_where_there_is_nothing_to_film(tmp_path):
    run = sv.train("su-plus", "Tree-4", episodes=10)
    before = tmp_path / "tree.mp4"
    before.write_bytes(b"an older film")
    with pytest.raises(SurveyorError, match="Tree-4 has no pictures to film"):
        film.write(run, before)
    assert before.read_bytes() == b"an older film"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(SurveyorError, match=r"\.mp4 or \.gif, not '\.avi'"):
        film.write(run, tmp_path / "tree.avi")
