"""All environment families. A new family is one file and one line in `FAMILIES`."""

from typing import Any

from surveyor.envs import atari, gymnasium_ids, minatar, paper_problems
from surveyor.envs.family import Family
from surveyor.errors import SurveyorError

FAMILIES = [*paper_problems.FAMILIES, minatar.FAMILY, atari.FAMILY, gymnasium_ids.FAMILY]
"""Known families; the first that matches a name has it, and Gymnasium's matches every name."""


def register(family: Family) -> None:
    """Add a family; it is asked before those registered earlier.

    **Arguments:**

    - `family`: the description. Its name must be new; raise `SurveyorError` if it is taken.

    A family is known to the process that registers it. Call this at the top level of a module that
    worker processes import too, such as the script that starts the training.
    """
    if any(known.name == family.name for known in FAMILIES):
        raise SurveyorError(f"There already is an environment family '{family.name}'.")
    FAMILIES.insert(0, family)


def find(name: str) -> Family:
    """Return the family of an environment's name; Gymnasium's if no other matches."""
    return next(family for family in FAMILIES if family.matches(name))


def of(env: Any) -> Family:
    """Return the family of an environment given by name or as an object.

    **Arguments:**

    - `env`: a name, a Gymnasium environment or vector environment, a function that makes one, or a
      functional environment, alone or in a tuple with its parameters. The `make` of an object's
      family returns that object.
    """
    if isinstance(env, str):
        return find(env)
    from surveyor.envs import objects

    return objects.family(env)
