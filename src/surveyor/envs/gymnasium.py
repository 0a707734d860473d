"""Gymnasium ids of the paper's problems, registered by importing this module.

    import gymnasium
    env = gymnasium.make("surveyor.envs.gymnasium:surveyor/Tree-v0", size=100)

Gymnasium imports the module before the colon, which needs no JAX; making an environment does.
"""

import gymnasium

from surveyor.envs.paper_problems import FAMILIES


def register() -> None:
    """Register `surveyor/Tree-v0`, `surveyor/TiedTree-v0` and `surveyor/Chain-v0`, once."""
    for family in FAMILIES:
        name = f"surveyor/{family.name}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="surveyor.envs.gymnasium_env:GymnasiumEnv",
                kwargs={"family": family.name, "size": 10},
            )


register()
