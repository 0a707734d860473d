"""Train one environment of every family, and print a table of steps per second.

    python benchmarks/families.py [--steps 5000] [--only DeepSea MiniGrid]

Compilation is left out: steps are timed from the first record on. A row whose package is missing
says so.
"""

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path

import surveyor as sv
from surveyor.envs import families
from surveyor.errors import SurveyorError
from surveyor.runs import api

ENVIRONMENTS = {
    "DeepSea": "DeepSea-20",
    "bsuite": "bsuite/catch/0",
    "MiniGrid": "MiniGrid-Empty-8x8-v0",
    "gymnax": "gymnax/CartPole-v1",
    "MinAtar": "MinAtar/Breakout",
    "Navix": "Navix-Empty-8x8-v0",
    "Craftax": "Craftax-Classic-Symbolic-v1",
    "Gymnasium": "CartPole-v1",
}
AGENTS = ("su-plus", "dqn")
WARMED = 0.4
"""Share of the steps before the clock starts: everything that compiles has run by then."""


def speed(agent: str, name: str, steps: int) -> str:
    """Return the steps per second after compilation, or why there are none."""
    try:
        preset = sv.agents.preset(agent, families.find(name).preset(name))
        learner = dataclasses.replace(preset, warmup=min(preset.schedule.warmup, steps // 5))
        config = api.configure(learner, name, steps=steps)
        with tempfile.TemporaryDirectory() as out:
            run, began, done, now = api.begin(config, Path(out)), None, 0, 0.0
            for _ in run.advance():
                done, now = run.result["steps"], time.perf_counter()
                if began is None and done >= WARMED * steps:
                    began = done, now
            if began is None or done == began[0]:
                return "too few steps"
            return f"{(done - began[0]) / (now - began[1]):,.0f}"
    except SurveyorError as error:
        return str(error)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--only", nargs="*", default=list(ENVIRONMENTS), choices=ENVIRONMENTS)
    options = parser.parse_args()
    print("| environment | " + " | ".join(f"{agent}, steps/s" for agent in AGENTS) + " |")
    print("|---|" + "---:|" * len(AGENTS))
    for family in options.only:
        name = ENVIRONMENTS[family]
        found = [speed(agent, name, options.steps) for agent in AGENTS]
        print(f"| `{name}` | " + " | ".join(found) + " |", flush=True)


if __name__ == "__main__":
    main()
