"""The time before and around training: the command line, a short run, and `run.predict`.

    make bench                                          # its second part
    python benchmarks/startup.py [--repeats 3]

1. `surveyor --help`, `surveyor list envs` and a wrong name, beside `import jax` in Python. None of
   them may import JAX.
2. `surveyor train Tree-100` from the prompt to its end, with an empty folder for compiled programs,
   and again with the folder that this one filled, beside the same without such a folder.
3. `run.predict` of DQN on one observation of CartPole-v1 and on 64 at once, after the first calls,
   beside one jitted function in plain JAX: a network of the same size, two hidden layers of 128.

The commands take turns, on all cores; `run.predict` has one core. The best of each counts. Exits
with 1 if a command that need not import JAX does.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measuring import Figures, disturbance, median_time, pinned, ratio, shown, used_by_others

SURVEYOR = str(Path(sys.executable).with_name("surveyor"))
LIGHT = {
    "surveyor --help": (["--help"], 0),
    "surveyor list envs": (["list", "envs"], 0),
    "surveyor train Nonsense": (["train", "Nonsense"], 2),
}
"""Commands that need no JAX: their words and their exit codes."""
IMPORT, FIRST, AGAIN, OFF = "import jax", "first time", "again", "cache off"
LIGHT_GOAL, FIRST_GOAL, AGAIN_GOAL, PREDICT_GOAL = 0.4, 5.0, 2.5, 100.0
"""Most seconds of a light command, of a first run and of another one; most µs of a prediction."""
CACHE = "SURVEYOR_CACHE"
"""Environment variable with the folder for compiled programs; off for none."""
AGENT, HIDDEN, MANY, CALLS = "dqn", 128, 64, 1_000


def seconds(words: Sequence[str], code: int = 0, cache: str = "off") -> float:
    """Return the wall time of a command; raise if its exit code is another."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMP")}
    began, others = time.perf_counter(), used_by_others()
    done = subprocess.run(words, env=kept | {CACHE: cache}, capture_output=True, text=True)
    took = time.perf_counter() - began
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    said = disturbance((used_by_others() - others) / took)
    print(f"{' '.join(map(os.path.basename, words[:4]))}: {took:.2f} s{said}", flush=True)
    return took


def imports_jax(words: Sequence[str]) -> bool:
    """Return whether a `surveyor` command imports JAX."""
    command = [sys.executable, "-X", "importtime", SURVEYOR, *words]
    listed = subprocess.run(command, capture_output=True, text=True).stderr
    return re.search(r"\| +jax(\.\w+)*$", listed, re.MULTILINE) is not None


def train(found: Figures) -> None:
    """Train Tree-100 with an empty cache, with the one that this filled, and without."""
    with tempfile.TemporaryDirectory() as folder:
        for name in (FIRST, AGAIN, OFF):
            cache = "off" if name == OFF else str(Path(folder, "cache"))
            words = [SURVEYOR, "train", "Tree-100", "--out", str(Path(folder, name))]
            found.setdefault(name, []).append(seconds(words, cache=cache))


def predict() -> dict[str, float]:
    """Return the microseconds of `run.predict` and of the same network in plain JAX."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import surveyor as sv

    run = sv.train(AGENT, "CartPole-v1", steps=400)
    shapes = ((4, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 2))
    rng = np.random.default_rng(0)
    weights = [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]

    @jax.jit
    def plain(obs: Any) -> Any:
        x = obs
        for w in weights[:-1]:
            x = jax.nn.relu(x @ w)
        return jnp.argmax(x @ weights[-1], axis=-1)

    every = rng.random((MANY, 4), np.float32)
    calls: dict[str, Callable[[], Any]] = {
        "predict 1": lambda: run.predict(every[0]),
        "plain 1": lambda: np.asarray(plain(every[0])),
        f"predict {MANY}": lambda: run.predict(every),
        f"plain {MANY}": lambda: np.asarray(plain(every)),
    }
    return {name: 1e6 * median_time(call, CALLS) for name, call in calls.items()}


def report(found: Figures, heavy: list[str]) -> None:
    """Print the table."""
    print("\n| | value | peer | ratio | target |\n|---|---:|---:|---:|---|")

    def line(what: str, name: str, peer: str, goal: float | None, unit: str) -> None:
        digits, best = (0 if unit == "µs" else 2), min(found[name])
        cells = " | ".join(f"{shown(found[each], min, digits)} {unit}" for each in (name, peer))
        met = "" if goal is None else f"≤ {goal:g} {unit}: {'met' if best <= goal else 'missed'}"
        met += " (imports JAX)" if name in heavy else ""
        print(f"| {what} | {cells} | {ratio(best / min(found[peer]), None)}{met} |")

    for name in LIGHT:
        line(f"`{name}`, beside `import jax`", name, IMPORT, LIGHT_GOAL, "s")
    line("`surveyor train Tree-100`, empty cache, beside none", FIRST, OFF, FIRST_GOAL, "s")
    line("the same again, filled cache, beside none", AGAIN, OFF, AGAIN_GOAL, "s")
    for count, goal in ((1, PREDICT_GOAL), (MANY, None)):
        what = f"`run.predict`, {count} at once, {AGENT}, beside plain JAX"
        line(what, f"predict {count}", f"plain {count}", goal, "µs")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--predict", action="store_true", help="only this part, as JSON")
    options = parser.parse_args()
    if options.predict:
        print(json.dumps(predict()))
        return 0
    found: Figures = {}
    for _ in range(options.repeats):
        found.setdefault(IMPORT, []).append(seconds([sys.executable, "-c", "import jax"]))
        for name, (words, code) in LIGHT.items():
            found.setdefault(name, []).append(seconds([SURVEYOR, *words], code))
        train(found)
        printed, busy = pinned([sys.executable, __file__, "--predict"], 1)
        print(f"run.predict: {printed.splitlines()[-1]}{disturbance(busy)}", flush=True)
        for name, value in json.loads(printed.splitlines()[-1]).items():
            found.setdefault(name, []).append(value)
    heavy = [name for name, (words, _) in LIGHT.items() if imports_jax(words)]
    report(found, heavy)
    return 1 if heavy else 0


if __name__ == "__main__":
    sys.exit(main())
