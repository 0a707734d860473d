"""Atari games through ale-py's vector environment."""

import numpy as np

from surveyor.envs.atari import FRAMES, GAME_OPTIONS, load_ale, rom
from surveyor.envs.host import HostStep, SeededEnvs
from surveyor.envs.reading import check_rewards
from surveyor.errors import SurveyorError
from surveyor.types import EnvSpec


class AtariEnvs(SeededEnvs):
    """Copies of one game, stepped together."""

    reseed_after = 2000  # with a new seed ale-py loads the game again, which takes 0.15 s

    def __init__(self, game: str, count: int, protocol: str = "paper"):
        self.name, self.count, self.read = f"ALE/{game}", count, np.asarray
        self._lives_end = self._clip = protocol == "paper"
        self._env = load_ale()(
            rom(game),
            count,
            autoreset_mode="SameStep",
            max_num_frames_per_episode=108_000,  # 30 minutes
            reward_clipping=False,
            use_fire_reset=False,
            **GAME_OPTIONS[protocol],
        )
        actions = int(self._env.single_action_space.n)
        self.spec = EnvSpec(0, actions, 0, (FRAMES, 84, 84), "uint8", stack=FRAMES)
        self._lives = np.zeros(count, np.int64)

    def picture(self) -> np.ndarray:
        """Return the newest frame as the agent sees it, four times as large."""
        grey = np.kron(self._newest, np.ones((4, 4), np.uint8))
        return np.repeat(grey[:, :, None], 3, axis=2)

    def close(self) -> None:
        self._env.close()

    def _reset(self, which: np.ndarray) -> np.ndarray:
        # ale-py has already started an episode by itself; start again with our seed.
        options = None if np.all(which) else {"reset_mask": which}
        obs, info = self._env.reset(seed=self._seeds(which), options=options)
        self._lives[which] = np.asarray(info["lives"])[which]
        self._newest = obs[0, -1]
        return obs

    def _step(self, actions: np.ndarray) -> HostStep:
        if np.any((actions < 0) | (actions >= self.spec.num_actions)):  # ale-py would hang
            raise SurveyorError(f"{self.name} has actions 0 to {self.spec.num_actions - 1} only.")
        obs, score, terminated, truncated, info = self._env.step(np.asarray(actions, np.int64))
        check_rewards(self.name, score)
        ended = terminated | truncated
        lives = np.array(info["lives"])
        lost = (lives < self._lives) & ~ended
        self._lives, self._newest = lives, obs[0, -1]
        final = np.where(ended[:, None, None, None], info["final_obs"], obs) if any(ended) else obs
        score = np.asarray(score, np.float32)
        reward = np.sign(score) if self._clip else score
        over = terminated | lost if self._lives_end else terminated
        return HostStep(obs, final, reward, score, over, ended, np.zeros_like(ended))

    def _replay(self) -> np.ndarray:
        """Replay all at once: one with fewer actions plays any action until its own start."""
        left = np.asarray([len(actions) for actions in self._actions])
        obs = self._reset(np.ones(self.count, bool))
        for remaining in range(int(left.max()), 0, -1):
            moves = [each[-remaining] if len(each) >= remaining else 0 for each in self._actions]
            obs = self._step(np.asarray(moves)).obs
            starting = left == remaining - 1
            if np.any(starting):
                obs = self._reset(starting)
        return obs
