"""Gymnasium ids of the paper's problems: `surveyor/Tree-v0` and its relatives.

Registering them imports neither JAX nor the environments.
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
                entry_point="surveyor.envs.gymnasium:GymnasiumEnv",
                kwargs={"family": family.name, "size": 10},
            )


register()
