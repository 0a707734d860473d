# pyright: reportMissingImports=false
"""What `deep_peers.py` measures us beside: Stable-Baselines3's DQN, and SU in plain PyTorch."""

import os
import time
from collections.abc import Callable

GAME = "breakout"
SB3_STEPS, ATARI_STEPS, LEARNING_STARTS = 12_000, 2_000, 500


def sb3_minatar(_: int) -> dict[str, float]:
    """Stable-Baselines3's DQN with the same network, environments and updates."""
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
    return sb3("MlpPolicy", DummyVecEnv([Game] * 8), policy, SB3_STEPS, train_freq=1, updates=2)


def sb3_atari(_: int) -> dict[str, float]:
    """Stable-Baselines3's DQN as it comes, with its own Atari wrappers and network."""
    import ale_py
    import gymnasium
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)
    env = VecFrameStack(make_atari_env("BreakoutNoFrameskip-v4", n_envs=1, seed=0), n_stack=4)
    return sb3("CnnPolicy", env, {}, ATARI_STEPS, train_freq=4, updates=1)


def sb3(policy, env, options, steps: int, train_freq: int, updates: int) -> dict[str, float]:
    """Steps a second of its DQN while it learns."""
    from stable_baselines3 import DQN

    agent = DQN(
        policy, env, policy_kwargs=options, batch_size=32, buffer_size=20_000,
        learning_starts=LEARNING_STARTS, train_freq=train_freq, gradient_steps=updates,
    )  # fmt: skip
    agent.learn(2 * LEARNING_STARTS)
    begin = time.perf_counter()
    agent.learn(steps, reset_num_timesteps=False)
    return {"steps_per_second": steps / (time.perf_counter() - begin)}


def torch_step(_: int) -> dict[str, float]:
    """Milliseconds of SU's gradient step on Atari, as one would write it in PyTorch."""
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

    return {"ms": 1e3 * median_time(step)}


def median_time(function: Callable[[], object], repeats: int = 30) -> float:
    """Seconds, after a few calls that do not count."""
    taken = []
    for i in range(repeats + 5):
        begin = time.perf_counter()
        function()
        if i >= 5:
            taken.append(time.perf_counter() - begin)
    return sorted(taken)[repeats // 2]
