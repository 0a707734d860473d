"""Ten of MiniGrid's worlds, fully observed, in the compiled loop."""

from surveyor.bench import scores
from surveyor.bench.options import MiniGridOptions
from surveyor.bench.scores import Task

STEPS, EMPTY_STEPS = 200_000, 50_000
WORLDS = (
    "Empty-8x8", "Empty-16x16", "DoorKey-5x5", "DoorKey-6x6", "DoorKey-8x8", "FourRooms",
    "MultiRoom-N2-S4", "SimpleCrossingS9N1", "KeyCorridorS3R1", "Unlock",
)  # fmt: skip
SOLVED = 0.9
TASKS = tuple(
    Task(
        name,
        f"MiniGrid-{name}-v0",
        EMPTY_STEPS if name.startswith("Empty") else STEPS,
        worst=0.0,
        best=1.0,
        solved=SOLVED if name.startswith(("Empty", "DoorKey")) else 0.7,
        protocol="compiled",
    )
    for name in WORLDS
)
"""The optimal policy is below 1, since time costs up to 0.9 of it: 0.96 on Empty-8x8."""


def run(options: MiniGridOptions) -> None:
    """Train, and write minigrid.jsonl, minigrid.json, minigrid.md and minigrid.png."""
    scores.run("minigrid", "MiniGrid, fully observed", TASKS, options)
