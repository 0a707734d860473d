"""A film of one greedy episode."""

import contextlib
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from surveyor.errors import SurveyorError, missing
from surveyor.training.host import HostRunner, play
from surveyor.runs.run import Run
from surveyor.training.runner import FunctionalRunner

See = Callable[[np.ndarray, Callable[[], np.ndarray], int], None]
"""Is shown an observation, what makes a picture of it, and the action that is taken."""
SECOND = 15
"""Steps a second: those of Atari, which shows 60 frames and holds an action for four."""
LARGER = 32
"""How many times as large a small picture is shown."""
SMALL = 36
"""One with fewer rows is small."""
LONGEST = 10_000
"""Pictures in a film at the most: eleven minutes."""


def write(run: Run, path: str | Path, seed: int = 0) -> Path:
    """Play one episode and write what it looked like."""
    path = Path(path)
    if path.suffix not in (".mp4", ".gif"):
        raise SurveyorError(f"A film is .mp4 or .gif, not '{path.suffix or path.name}'.")
    try:
        import imageio.v2 as imageio
    except ImportError:
        raise missing("imageio", "video", "A film") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = {"duration": 1000 / SECOND, "loop": 0}
    if path.suffix == ".mp4":
        kind = {"fps": SECOND, "codec": "libx264", "macro_block_size": 2}
    half = path.with_name(f".half-{path.name}")  # so that a film is whole or not there
    try:
        with warnings.catch_warnings(), imageio.get_writer(half, **kind) as film:
            # ffmpeg is started by a fork that runs nothing else, which harms no thread of JAX's.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            watch(run, seed, _filming(film))
        half.replace(path)
    except (ImportError, ValueError, OSError) as error:
        if "ffmpeg" not in str(error).lower() and not isinstance(error, ImportError):
            raise
        raise missing("imageio-ffmpeg", "video", "A film in .mp4") from None
    finally:
        half.unlink(missing_ok=True)
    return path


def _filming(film: Any) -> See:
    """Write every picture as it comes: an episode of Atari is a gigabyte of them."""
    count = 0

    def see(obs: np.ndarray, picture: Callable[[], np.ndarray], action: int) -> None:
        nonlocal count
        if count == LONGEST:
            raise EnoughError
        count += 1
        frame = picture()
        if len(frame) < SMALL:
            frame = np.kron(frame, np.ones((LARGER, LARGER, 1), np.uint8))
        film.append_data(frame)

    return see


class EnoughError(Exception):
    """Raised by who watches an episode, to end it."""


def watch(run: Run, seed: int, see: See) -> None:
    """Play a greedy episode; `see` is called before every step, with the observation, with what
    makes a picture of it and with the action, and may raise `EnoughError`."""
    # Classic environments draw with pygame, which greets everybody and looks for a loudspeaker.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    with contextlib.suppress(EnoughError):
        _watch(run, seed, see)


def _watch(run: Run, seed: int, see: See) -> None:
    runner = run.runner
    if isinstance(runner, HostRunner):
        envs = runner.make(1)
        try:
            one = lambda obs, action: see(obs[0], envs.picture, int(action[0]))  # noqa: E731
            play(run.agent, run.state, envs, 1, 10**9 + seed, one)
        finally:
            envs.close()
    elif isinstance(runner, FunctionalRunner) and len(runner.spec.shape) == 3:
        _watch_functional(run, runner, seed, see)
    else:
        raise SurveyorError(f"{run.config.env} has no pictures to film.")


def _watch_functional(run: Run, runner: FunctionalRunner, seed: int, see: See) -> None:
    env, index = runner.env, run.agent.greedy(run.state)
    key = jax.random.key(seed)
    obs, state = env.reset(key)
    act = jax.jit(lambda obs, u: run.agent.act(run.state, index, obs, u))
    step = jax.jit(env.step)
    over = False
    while not over:
        seen = np.asarray(obs)
        key, act_key, env_key = jax.random.split(key, 3)
        action = act(obs, jax.random.uniform(act_key, (env.spec.num_actions,)))
        see(seen, partial(coloured, seen), int(action))
        obs, state, _, terminated, truncated, _ = step(env_key, state, action)
        over = bool(terminated | truncated)


def coloured(channels: Any) -> np.ndarray:
    """A picture of an observation whose channels are on or off: a colour for each."""
    count = channels.shape[-1]
    hue = np.arange(count) / count
    colours = 0.5 + 0.5 * np.cos(2 * np.pi * (hue[:, None] + np.array([0.0, 1 / 3, 2 / 3])))
    shown = np.max(channels[..., None].astype(float) * colours, axis=2)
    return (255 * shown).astype(np.uint8)
