"""The Atari 2600 games through ale-py's vector environment, in two protocols.

- `paper` (Mnih et al. 2015, as in the paper): up to 30 no-ops at the start, no sticky actions, the
  loss of a life ends an episode for learning only, rewards clipped to their sign for learning, 30
  minutes of play (108,000 frames) at the most.
- `machado` (Machado et al. 2018): sticky actions with probability 0.25, no no-ops, no signal for
  lives, all 18 actions.

An observation is the last four frames of 84 × 84 grey pixels, an action is held for four frames.
Scores are raw.
"""

import csv
import functools
import importlib.resources
from typing import Any, Literal

import numpy as np

from surveyor.envs.host import HostStep, SeededEnvs
from surveyor.envs.reading import check_rewards
from surveyor.errors import SurveyorError, missing, unknown
from surveyor.types import EnvSpec

Protocol = Literal["paper", "machado"]
PROTOCOLS: dict[str, dict[str, Any]] = {
    "paper": {"noop_max": 30, "repeat_action_probability": 0.0, "full_action_space": False},
    "machado": {"noop_max": 0, "repeat_action_probability": 0.25, "full_action_space": True},
}
FRAMES = 4
"""An action is held for this many frames, and an observation stacks as many."""
LONGEST = 108_000
"""Frames in an episode at the most: 30 minutes."""


class AtariEnvs(SeededEnvs):
    """One game, several times side by side."""

    reseed_after = 2000  # a new seed makes ale-py load the game again, which takes 0.15 s

    def __init__(self, game: str, count: int, protocol: str = "paper", threads: int = 0):
        self.name, self.count = f"ALE/{game}", count
        if protocol not in PROTOCOLS:
            raise unknown("Atari protocol", protocol, PROTOCOLS)
        self._lives_end = self._clip = protocol == "paper"
        self._env = _vector_env()(
            rom(game),
            count,
            num_threads=threads,
            autoreset_mode="SameStep",
            max_num_frames_per_episode=LONGEST,
            reward_clipping=False,
            use_fire_reset=False,
            **PROTOCOLS[protocol],
        )
        actions = int(self._env.single_action_space.n)
        self.spec = EnvSpec(0, actions, 0, (FRAMES, 84, 84), "uint8", stack=FRAMES)
        self._begun = False
        self._lives = np.zeros(count, np.int64)

    def picture(self) -> np.ndarray:
        """The newest frame as the agent sees it, larger."""
        grey = np.kron(self._newest, np.ones((4, 4), np.uint8))
        return np.repeat(grey[:, :, None], 3, axis=2)

    def close(self) -> None:
        self._env.close()

    def _reset(self, which: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        # The environment has begun an episode of its own accord; it begins again with our seed.
        everyone = not self._begun or bool(np.all(which))
        options = None if everyone else {"reset_mask": which}
        obs, info = self._env.reset(seed=seeds, options=options)
        self._begun = True
        self._lives[which] = np.asarray(info["lives"])[which]
        self._newest = obs[0, -1]
        return obs

    def _step(self, actions: np.ndarray) -> HostStep:
        if np.any((actions < 0) | (actions >= self.spec.num_actions)):  # ale-py would hang
            raise SurveyorError(f"{self.name} has actions 0 to {self.spec.num_actions - 1} only.")
        obs, score, terminated, truncated, info = self._env.step(np.asarray(actions, np.int64))
        check_rewards(self.name, score)
        ended = terminated | truncated
        lives = np.asarray(info["lives"])
        lost = (lives < self._lives) & ~ended
        self._lives, self._newest = lives.copy(), obs[0, -1]
        final = obs
        if np.any(ended):
            final = np.where(ended[:, None, None, None], info["final_obs"], obs)
        score = np.asarray(score, np.float32)
        reward = np.sign(score) if self._clip else score
        over = terminated | lost if self._lives_end else terminated
        return HostStep(obs, final, reward, score, over, ended, np.zeros_like(ended))

    def _replay(self) -> np.ndarray:
        """All step together, so an environment whose episode is shorter plays anything until it
        is its turn to begin."""
        left = np.asarray([len(actions) for actions in self._actions])
        obs = self._reset(np.ones(self.count, bool), self._seeds(range(self.count)))
        for remaining in range(int(left.max()), 0, -1):
            now = left == remaining
            if np.any(now) and remaining < left.max():
                obs = self._reset(now, self._seeds(np.flatnonzero(now)))
            moves = [
                actions[-remaining] if len(actions) >= remaining else 0 for actions in self._actions
            ]
            obs = self._step(np.asarray(moves)).obs
        fresh = left == 0
        if np.any(fresh) and left.max() > 0:
            obs = self._reset(fresh, self._seeds(np.flatnonzero(fresh)))
        return obs


@functools.cache
def scores() -> dict[str, dict[str, float]]:
    """Human, random and published scores of the 49 games."""
    text = (
        importlib.resources.files("surveyor.envs").joinpath("atari_scores.csv").read_text("utf-8")
    )
    rows = csv.DictReader(text.splitlines())
    return {
        row.pop("game"): {name: float(value) for name, value in row.items() if value}
        for row in rows
    }


Table = Literal["paper", "30min"]
"""Whose human and random scores: those of the paper (Mnih et al. 2015, episodes of 5 minutes), or
those of episodes of 30 minutes that others in the field use."""


def reference(game: str, table: Table = "paper") -> tuple[float, float] | None:
    """The random and the human score of a game, in any of its usual spellings."""
    known = {name.replace("_", ""): row for name, row in scores().items()}
    row = known.get(game.replace("_", "").lower())
    suffix = "" if table == "paper" else f"_{table}"
    return None if row is None else (row[f"random{suffix}"], row[f"human{suffix}"])


def human_normalised(game: str, score: float, table: Table = "paper") -> float | None:
    """(score - random) / (human - random), where both are known."""
    found = reference(game, table)
    return None if found is None else (score - found[0]) / (found[1] - found[0])


def rom(game: str) -> str:
    """ale-py's name of a game, from any of its usual spellings; an error if there is none."""
    _vector_env()
    from ale_py import roms

    known = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
    found = known.get(game.replace("_", "").lower())
    if found is not None:
        return found
    raise unknown("Atari game", game, sorted(scores()))


def _vector_env() -> Any:
    try:
        import ale_py
        from ale_py.vector_env import AtariVectorEnv
    except ImportError:
        raise missing("ale-py", "atari", "Atari") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return AtariVectorEnv
