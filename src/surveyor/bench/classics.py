"""Small problems with sparse or random rewards, numbered states and vectors."""

from surveyor.bench import scores
from surveyor.bench.options import ClassicsOptions
from surveyor.bench.scores import Task
from surveyor.envs.small import FrozenLake, RiverSwim

SHARE = 0.9
"""Share of the best mean return from which a problem of chance is solved."""
RIVER, LAKE, FIRM = RiverSwim(12), FrozenLake(8), FrozenLake(8, slippery=False)


def _best(name: str, best: float, steps: int) -> Task:
    return Task(name, name, steps, worst=0.0, best=best, solved=SHARE * best)


TASKS = (
    Task("MountainCar", "MountainCar-v0", 150_000, worst=-200.0, best=-100.0, solved=-110.0),
    Task("Acrobot", "Acrobot-v1", 100_000, worst=-500.0, best=-80.0, solved=-100.0),
    Task(
        "CartPole swing-up",
        "bsuite/cartpole_swingup/0",
        1_000_000,
        worst=0.0,
        best=800.0,
        solved=100.0,
        protocol="compiled",
    ),
    _best(LAKE.name, LAKE.optimal_return, 200_000),
    _best(FIRM.name, FIRM.optimal_return, 100_000),
    _best(RIVER.name, RIVER.optimal_return, 50_000),
    _best("Lock-12", 1.0, 100_000),
)


def run(options: ClassicsOptions) -> None:
    """Train, and write classics.jsonl, classics.json, classics.md and classics.png."""
    scores.run("classics", "Small problems", TASKS, options)
