"""What a run is asked to do, as data."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from surveyor import agents
from surveyor.agents.base import Agent
from surveyor.errors import SurveyorError


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that decides a run's result; equal configurations give equal bits."""

    env: str
    agent: Agent
    seed: int
    episodes: int | None = None
    """The budget on the paper's problems, which are learnt by episodes."""
    stop_when_solved: bool = True
    steps: int | None = None
    """The budget on all others, which are learnt by steps."""
    protocol: str | None = None
    """Of an Atari game: paper or machado."""
    source: Any = dataclasses.field(default=None, compare=False, repr=False)
    """The environment itself, where it is not made from its name."""

    def __post_init__(self):
        self.seed_checked()
        for name in ("episodes", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SurveyorError(f"{name} must be at least 1, not {value}.")

    @property
    def budget(self) -> int:
        """Episodes or steps to train for."""
        return (self.episodes if self.steps is None else self.steps) or 0

    @property
    def by_frames(self) -> bool:
        """Whether people count its frames: those of an Atari game, by its name."""
        return self.source is None and self.env.startswith("ALE/")

    def seed_checked(self) -> int:
        """The seed, if it is one that every generator involved accepts."""
        if not 0 <= self.seed < 2**32:
            raise SurveyorError(f"seed must be between 0 and 2^32 - 1, not {self.seed}.")
        return self.seed

    @property
    def name(self) -> str:
        """The run folder's name."""
        agent = agents.name_of(self.agent)
        env = re.sub(r"[^A-Za-z0-9.]+", "-", self.env)[:80]  # the hash is of all of it
        return f"{env}-{agent}-s{self.seed}-{self.digest()[:8]}"

    def digest(self) -> str:
        """A hash of all that decides the result."""
        return hashlib.sha256(json.dumps(self._deciding(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As written to config.json: what decides the result, and where it was run."""
        return {**self._deciding(), "versions": versions(), "commit": commit()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Config":
        """Read back what `to_json` wrote."""
        if not isinstance(content["env"], str) or type(content["seed"]) is not int:
            raise ValueError("env or seed are not what they should be")
        agent = agents.make(content["agent"], content["hyperparameters"])
        names = ("episodes", "stop_when_solved", "steps", "protocol")
        rest = {name: content[name] for name in names if name in content}
        if not isinstance(rest.get("steps", rest.get("episodes")), int):
            raise ValueError("it has no budget")
        return cls(content["env"], agent, content["seed"], **rest)

    def _deciding(self) -> dict[str, Any]:
        content = {
            "env": self.env,
            "agent": agents.name_of(self.agent),
            "hyperparameters": dataclasses.asdict(self.agent),
            "seed": self.seed,
        }
        if self.steps is None:
            return {
                **content,
                "episodes": self.episodes,
                "stop_when_solved": self.stop_when_solved,
            }
        content["steps"] = self.steps
        return content if self.protocol is None else {**content, "protocol": self.protocol}


@functools.cache
def versions() -> dict[str, str]:
    """The versions of everything that computes."""
    packages = ("surveyor", "jax", "jaxlib", "equinox", "optax", "numpy")
    return {package: importlib.metadata.version(package) for package in packages}


@functools.cache
def commit() -> str | None:
    """The git commit of surveyor's own source, where it is run from a checkout."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
