"""`surveyor list`."""

from surveyor import agents
from surveyor.cli.options import Positional, command
from surveyor.envs import families
from surveyor.errors import unknown


@command
def main(what: Positional[str]) -> None:
    """List what there is.

    Args:
        what: What to list: agents, envs or presets.
    """
    lists = {
        "agents": [f"{entry.name:10} {entry.summary}" for entry in agents.entries()],
        "envs": [f"{family.usage:16} {family.summary}" for family in families.known()],
        "presets": _presets(),
    }
    if what not in lists:
        raise unknown("list", what, lists)
    print("\n".join(lists[what]))


def _presets() -> list[str]:
    """Return every preset with its source, and its values on each kind of problem."""
    lines = []
    for entry in agents.entries():
        for number, (name, preset) in enumerate(entry.presets.items()):
            default = " (default)" if number == 0 else ""
            lines.append(f"--agent {entry.name} --preset {name}{default}: {preset.source}")
            for problem, values in preset.values.items():
                said = ", ".join(f"{key} {value}" for key, value in values.items())
                lines.append(f"    on {problem}: {said or 'class defaults'}")
    return lines
