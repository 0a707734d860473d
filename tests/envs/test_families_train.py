"""Every family trains from an environment's name."""

import pytest

import surveyor as sv
from surveyor.envs import families

NAMES = (
    "DeepSea-10",
    "DeepSea-10-stochastic",
    "RiverSwim-6",
    "FrozenLake-4x4",
    "Lock-4",
    "bsuite/catch/0",
    "bsuite/cartpole_swingup/5",
    "MiniGrid-Empty-5x5-v0",
    "BabyAI-GoToRedBall-v0",
    "gymnax/CartPole-v1",
    "gymnax/FrozenLake-misc",
    "Navix-Empty-8x8-v0",
    "Craftax-Classic-Symbolic-v1",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("agent", ["su-plus", "dqn"])
def test_every_family_trains_from_its_name(name, agent, tmp_path):
    warmup = sv.agents.preset(agent, families.find(name).preset(name)).schedule.warmup
    steps = max(5_000, warmup + 1_000)  # so that every agent learns
    run = sv.train(agent, name, steps=steps, out=tmp_path)
    assert run.finished
    assert run.result["steps"] >= steps
    assert run.result["episodes"] > 0
    assert run.result["gradient_steps"] > 0


def test_the_names_above_cover_the_families_that_play_by_steps():
    covered = {families.find(name).name for name in NAMES}
    by_steps = {family.name for family in families.FAMILIES if not family.by_episodes}
    assert by_steps - covered == {"MinAtar", "ALE", "Gymnasium"}  # trained in tests/training
