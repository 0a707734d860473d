"""Films of greedy episodes."""

import contextlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from surveyor.errors import SurveyorError, imported, missing
from surveyor.runs.run import Run
from surveyor.training.runner import EnoughError, See

SECOND = 15
"""Steps per second: those of Atari, which shows 60 frames and holds an action for four."""
SMALL, LARGER = 36, 32
"""Rows below which a picture is enlarged, and by which factor."""
LONGEST = 10_000
"""Largest number of pictures in a film: eleven minutes."""


def write(run: Run, path: str | Path) -> Path:
    """Play one greedy episode and film it to `path`, an .mp4 or .gif."""
    path, left = Path(path), iter(range(LONGEST))
    if path.suffix not in (".mp4", ".gif"):
        raise SurveyorError(f"A film is .mp4 or .gif, not '{path.suffix or path.name}'.")
    imageio = imported("imageio.v2", "imageio", "video", "A film")
    path.parent.mkdir(parents=True, exist_ok=True)
    mp4 = {"fps": SECOND, "codec": "libx264", "macro_block_size": 2}
    kind = mp4 if path.suffix == ".mp4" else {"duration": 1000 / SECOND, "loop": 0}
    half = path.with_name(f".half-{path.name}")  # so that a film is whole or not there
    try:
        with warnings.catch_warnings(), imageio.get_writer(half, **kind) as film:
            # ffmpeg is started by a fork that runs nothing else, which harms no thread of JAX's.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)

            def see(obs: np.ndarray, picture: Callable[[], np.ndarray], action: int) -> None:
                if next(left, None) is None:
                    raise EnoughError
                frame = picture()
                if len(frame) < SMALL:
                    frame = np.kron(frame, np.ones((LARGER, LARGER, 1), np.uint8))
                film.append_data(frame)  # at once: an episode of Atari is a gigabyte

            watch(run, 0, see)
        half.replace(path)
    except (ImportError, ValueError, OSError) as error:
        if "ffmpeg" in str(error).lower() or isinstance(error, ImportError):
            raise missing("imageio-ffmpeg", "video", "A film in .mp4") from None
        raise
    finally:
        half.unlink(missing_ok=True)
    return path


def watch(run: Run, seed: int, see: See) -> None:
    """Play a greedy episode; call `see` before every step, which may raise `EnoughError`."""
    # Classic environments draw with pygame, which prints a greeting and looks for a loudspeaker.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    with contextlib.suppress(EnoughError):
        run.runner.film(run.state, seed, see)
