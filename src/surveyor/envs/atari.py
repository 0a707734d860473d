"""The Atari 2600 games, in two protocols.

- `paper` (Mnih et al. 2015, as in the paper): up to 30 no-ops at the start, no sticky actions, a
  lost life ends an episode for learning only, rewards clipped to their sign for learning, episodes
  of at most 30 minutes of play (108,000 frames).
- `machado` (Machado et al. 2018): sticky actions with probability 0.25, no no-ops, no signal for
  lives, all 18 actions.

An observation is the last four frames of 84 × 84 grey pixels; an action is held for four frames.
Scores are raw.
"""

import csv
import functools
import importlib.resources
import string
from typing import TYPE_CHECKING, Any, Literal

from surveyor.envs.families import Family
from surveyor.errors import imported, unknown

if TYPE_CHECKING:
    from surveyor.envs.host import HostMaker

PREFIX = "ALE/"
GAME_OPTIONS: dict[str, dict[str, Any]] = {
    "paper": {"noop_max": 30, "repeat_action_probability": 0.0, "full_action_space": False},
    "machado": {"noop_max": 0, "repeat_action_probability": 0.25, "full_action_space": True},
}
"""Options of ale-py, by protocol."""
FRAMES = 4
"""Frames that an action is held for, and that an observation stacks."""

Table = Literal["paper", "30min"]
"""Source of human and random scores: the paper (Mnih et al. 2015, episodes of 5 minutes), or those
of episodes of 30 minutes that are also in use."""


@functools.cache
def scores() -> dict[str, dict[str, float]]:
    """Return the human, random and published scores of the 49 games."""
    file = importlib.resources.files("surveyor.envs").joinpath("atari_scores.csv")
    rows = csv.DictReader(file.read_text("utf-8").splitlines())
    return {row.pop("game"): {key: float(row[key]) for key in row if row[key]} for row in rows}


def reference(game: str, table: Table = "paper") -> tuple[float, float] | None:
    """Return the random and the human score of a game in any usual spelling, or None."""
    known = {name.replace("_", ""): row for name, row in scores().items()}
    row = known.get(game.replace("_", "").lower())
    suffix = "" if table == "paper" else f"_{table}"
    return None if row is None else (row[f"random{suffix}"], row[f"human{suffix}"])


def human_normalised(game: str, score: float, table: Table = "paper") -> float | None:
    """Return (score - random) / (human - random), or None if these are unknown."""
    found = reference(game, table)
    return None if found is None else (score - found[0]) / (found[1] - found[0])


def game(name: str) -> str:
    """Return the game in an environment's name: Pong for ALE/Pong and ALE/Pong-v5."""
    return name.partition("/")[2].partition("-v")[0]


def rom(game: str) -> str:
    """Return ale-py's name of a game in any usual spelling; raise `SurveyorError` if unknown."""
    load_ale()
    from ale_py import roms

    known = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
    found = known.get(game.replace("_", "").lower())
    if found is None:
        raise unknown("Atari game", game, sorted(scores()))
    return found


def load_ale() -> Any:
    """Return ale-py's class of vector environments; raise `SurveyorError` if it is missing."""
    ale = imported("ale_py", "ale-py", "atari", "Atari")
    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
    return imported("ale_py.vector_env", "ale-py", "atari", "Atari").AtariVectorEnv


def _make(name: str, protocol: str | None = None) -> "HostMaker":
    from surveyor.envs.ale import AtariEnvs
    from surveyor.envs.host import HostMaker

    chosen = protocol or next(iter(FAMILY.protocols))
    return HostMaker(lambda count: AtariEnvs(game(name), count, chosen))


FAMILY = Family(
    name="ALE",
    usage="ALE/<Game>",
    summary="The Atari games, by the names of ale-py or Gymnasium.",
    matches=lambda name: name.startswith(PREFIX),
    canonical=lambda name: PREFIX + string.capwords(rom(game(name)), "_").replace("_", ""),
    make=_make,
    unit="frames",
    frames_per_step=FRAMES,
    default_budget=lambda name: 50_000_000,  # 200 million frames, as in the paper
    preset=lambda name: "atari",
    protocols={
        "paper": "no-op starts, a life lost ends an episode for learning",
        "machado": "sticky actions, all 18 actions",
    },
    evaluation_episodes=100,
    steps_per_second=45.0,
    alike=True,
    reference=lambda name: reference(game(name)),
    scale="0 is the random policy and 1 a human, as in the paper",
    shows="episode",
)
FAMILIES = (FAMILY,)
