"""Craftax (Matthews et al. 2024) by its ids, such as Craftax-Classic-Symbolic-v1."""

import contextlib
import functools
import sys
from typing import TYPE_CHECKING

from surveyor.envs.families import Family
from surveyor.errors import imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.functional import Functional

PREFIX = "Craftax-"
NAMES = [f"Craftax-{game}{view}-v1" for game in ("Classic-", "") for view in ("Symbolic", "Pixels")]


def _canonical(name: str) -> str:
    plain = name.replace("-AutoReset", "")  # episodes restart under either name
    if plain not in NAMES:
        raise unknown("environment", name, NAMES)
    return plain


@functools.cache  # runs with the same object share a compiled program
def _make(name: str, protocol: str | None = None) -> "Functional":
    from surveyor.envs.functional import Functional

    craftax = imported("craftax.craftax_env", "craftax", "craftax", name)
    with contextlib.redirect_stdout(sys.stderr):  # it reports on its textures
        env = craftax.make_craftax_env_from_name(_canonical(name), auto_reset=False)
    return Functional.wrap(env, name=name)


FAMILY = Family(
    name="Craftax",
    usage="Craftax-<id>",
    summary="Craftax and Craftax-Classic, with Symbolic or Pixels as observations.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=_canonical,
    make=_make,
    default_budget=lambda name: 1_000_000,
    preset=lambda name: "minatar" if "Pixels" in name else "classic",
    steps_per_second=500.0,
    candidates=lambda name: NAMES,
)
FAMILIES = (FAMILY,)
