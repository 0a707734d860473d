# pyright: reportMissingImports=false
"""The peers in PyTorch: Stable-Baselines3's DQN, and a plain gradient step of SU."""

import os
import time
from typing import Any

from measuring import median_time

GAME = "breakout"
SB3_STEPS, LEARNING_STARTS, REPLAY = 12_000, 500, 20_000
LEARNING = {"batch_size": 32, "buffer_size": REPLAY, "learning_starts": LEARNING_STARTS}


def sb3_minatar(steps: int) -> float:
    """Return the steps per second of DQN with the same network, environments and updates."""
    import gymnasium
    import numpy as np
    import torch
    from minatar import Environment
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Game(gymnasium.Env):
        """MinAtar's own environment."""

        def __init__(self):
            self.game = Environment(GAME, sticky_action_prob=0.1)
            self.actions = self.game.minimal_action_set()
            h, w, c = self.game.state_shape()
            self.observation_space = gymnasium.spaces.Box(0, 1, (c, h, w), np.float32)
            self.action_space = gymnasium.spaces.Discrete(len(self.actions))

        def _obs(self):
            return self.game.state().transpose(2, 0, 1).astype(np.float32)

        def reset(self, *, seed=None, options=None):
            self.game.reset()
            return self._obs(), {}

        def step(self, action):
            reward, over = self.game.act(self.actions[action])
            return self._obs(), reward, over, False, {}

    class Network(BaseFeaturesExtractor):
        """16 filters and a hidden layer of 128."""

        def __init__(self, space):
            super().__init__(space, 128)
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(space.shape[0], 16, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                torch.nn.Linear(1024, 128), torch.nn.ReLU(),
            )  # fmt: skip

        def forward(self, x):
            return self.layers(x)

    torch.set_num_threads(1)
    policy = {"features_extractor_class": Network, "net_arch": [], "normalize_images": False}
    env, when = DummyVecEnv([Game] * 8), {"train_freq": 1, "gradient_steps": 2}
    return sb3("MlpPolicy", env, policy, min(steps, SB3_STEPS), **LEARNING, **when)


def sb3_atari(width: int, steps: int) -> float:
    """Return the steps per second of DQN with its own Atari wrappers and convolutions."""
    import ale_py
    import gymnasium
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)
    env = VecFrameStack(make_atari_env("BreakoutNoFrameskip-v4", n_envs=1, seed=0), n_stack=4)
    policy = {"features_extractor_kwargs": {"features_dim": width}, "net_arch": []}
    when = {"train_freq": 4, "gradient_steps": 1}
    return sb3("CnnPolicy", env, policy, steps, **LEARNING, **when)


def sb3(policy: str, env: Any, network: dict[str, Any], steps: int, **learning: Any) -> float:
    """Return the steps per second of Stable-Baselines3's DQN while it learns."""
    from stable_baselines3 import DQN

    agent = DQN(policy, env, policy_kwargs=network, device="cpu", **learning)
    agent.learn(2 * learning["learning_starts"])
    before, begin = agent.num_timesteps, time.perf_counter()
    agent.learn(steps, reset_num_timesteps=False)
    return (agent.num_timesteps - before) / (time.perf_counter() - begin)


def torch_step(_: int) -> float:
    """Return the milliseconds of SU's gradient step on Atari, as one would write it in PyTorch."""
    import torch
    from torch import nn

    actions, d, batch, f = 4, 64, 32, nn.functional

    class Net(nn.Module):
        """Appendix C.2."""

        def __init__(self):
            super().__init__()
            self.torso = nn.Sequential(
                nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
                nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(),
            )  # fmt: skip
            self.phi, self.psi = nn.Linear(1024, actions * d), nn.Linear(1024, (1 + actions) * d)
            self.w = nn.Parameter(torch.zeros(d))

        def forward(self, frames):
            hidden = self.torso(frames.float() / 255)
            both = self.psi(hidden).view(-1, 1 + actions, d)
            return self.phi(hidden).view(-1, actions, d), both[:, :1] + both[:, 1:]

    torch.set_num_threads(os.cpu_count() or 1)
    net, target, R = Net(), Net(), torch.eye(d)
    optimiser = torch.optim.Adam(net.parameters(), 5e-5)
    obs, next_obs = (torch.randint(0, 255, (batch, 4, 84, 84), dtype=torch.uint8) for _ in "ab")
    action, reward, rows = torch.randint(0, actions, (batch,)), torch.rand(batch), range(batch)

    def step():
        with torch.no_grad():
            psi = target(next_obs)[1]
            q, noise = psi @ net.w, torch.linalg.solve_triangular(R, torch.randn(d, 20), upper=True)
            best = (q[..., None] + psi @ noise).argmax(1)
            pi = f.one_hot(best, actions).float().mean(1)
            next_psi, next_q = 0.99 * (pi[..., None] * psi).sum(1), 0.99 * q.max(1)[0]
        phi, psi = net(obs)
        phi, psi = (
            f.normalize(f.relu(phi[rows, action]), dim=1),
            psi[rows, action],
        )
        loss = f.smooth_l1_loss(psi, phi.detach() + next_psi) + f.mse_loss(phi @ net.w, reward)
        loss = loss + f.smooth_l1_loss(psi @ net.w, reward + next_q)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 10.0)
        optimiser.step()

    return 1e3 * median_time(step)
