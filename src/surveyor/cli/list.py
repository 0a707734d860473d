"""`surveyor list`."""

import dataclasses

from tyro.conf import Positional

from surveyor import agents
from surveyor.cli.options import parse
from surveyor.envs import families
from surveyor.errors import unknown


@dataclasses.dataclass(frozen=True)
class List:
    """List what there is."""

    what: Positional[str]
    """What to list: agents, envs or presets."""


def main(argv: list[str]) -> int:
    """Run `surveyor list`."""
    lists = {"agents": _agents, "envs": _envs, "presets": _presets}
    what = parse(List, argv, "surveyor list").what
    if what not in lists:
        raise unknown("list", what, lists)
    print("\n".join(lists[what]()))
    return 0


def _agents() -> list[str]:
    return [f"{entry.name:10} {entry.summary}" for entry in agents.REGISTRY.values()]


def _envs() -> list[str]:
    return [f"{family.usage:16} {family.summary}" for family in families.FAMILIES]


def _presets() -> list[str]:
    """Return every preset with its source, and its values on each kind of problem."""
    lines = []
    for entry in agents.REGISTRY.values():
        for number, (name, preset) in enumerate(entry.presets.items()):
            default = " (default)" if number == 0 else ""
            lines.append(f"--agent {entry.name} --preset {name}{default}: {preset.source}")
            for problem, values in preset.values.items():
                said = ", ".join(f"{key} {value}" for key, value in values.items())
                lines.append(f"    on {problem}: {said or 'class defaults'}")
    return lines
