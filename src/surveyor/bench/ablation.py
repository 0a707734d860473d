"""Train SU+ without one of its parts, to see what each is for."""

import dataclasses
from typing import Any

from surveyor.bench import classics, minigrid, scores
from surveyor.bench.options import AblationOptions
from surveyor.bench.scores import Task
from surveyor.envs import families
from surveyor.envs.sea import DeepSea

DEPTH, SEA_STEPS = 20, 40_000
SEA = DeepSea(DEPTH).optimal_return
CHOSEN = ("MountainCar", "DoorKey-6x6", classics.LAKE.name, "Lock-12")
TASKS = (
    Task("DeepSea-20", "DeepSea-20", SEA_STEPS, worst=0.0, best=SEA, solved=0.9 * SEA),
    *(task for task in (*classics.TASKS, *minigrid.TASKS) if task.name in CHOSEN),
)


@dataclasses.dataclass(frozen=True)
class Variant:
    """SU+ without one part."""

    label: str
    changes: dict[str, Any]
    on: tuple[bool, ...] = (False, True)
    """Tasks where the part has an effect: True for those of tables, False for those of networks."""


NETWORKS, TABLES = (False,), (True,)
VARIANTS = {
    "su-plus": Variant("SU+", {}),
    "incurious": Variant("no supposed rewards", {"curiosity": 0.0}),
    "one-size": Variant("supposed rewards of one size", {"spread": 1.0}),
    "small": Variant("small supposed rewards only", {"curiosity": 0.03, "spread": 10.0}),
    "one-sample": Variant("one sample", {"ensemble": 1}),
    "tried-only": Variant("nothing behind untried actions", {"untried": 0.0}),
    "no-contrast": Variant("no contrast", {"contrast": 1.0}, NETWORKS),
    "myopic": Variant(
        "worth fades as it is learnt", {"contrast": 1.0, "foresight": 0.95}, NETWORKS
    ),
    "not-averaged": Variant("network not averaged", {"averaged": False}, NETWORKS),
    "not-normalised": Variant("network not normalised", {"layer_norm": False}, NETWORKS),
    "unsettled": Variant("table does not settle", {"settling": 0.0}, TABLES),
}
LABELS = {name: variant.label for name, variant in VARIANTS.items()}


def agent_of(name: str, task: Task) -> Any:
    """Return SU+ without a part, or None where the part does nothing."""
    variant, tables = VARIANTS[name], families.find(task.env).preset(task.env) == "numbered"
    if tables not in variant.on:
        return None
    return dataclasses.replace(scores.preset("su-plus", task), **variant.changes)


def run(options: AblationOptions) -> None:
    """Train, and write ablation.jsonl, ablation.json, ablation.md and ablation.png."""
    entrants = {"labels": LABELS, "agent_of": agent_of}
    scores.run("ablation", "SU+ without one of its parts", TASKS, options, **entrants)
