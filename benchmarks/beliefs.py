"""What it costs a run to write down what its agent believes.

    python benchmarks/beliefs.py [--env Chain-160] [--episodes 5000] [--repeats 2]

The same run with and without, each in a process of its own, in turns; the best of each counts,
from before compilation to the last file. Training has one core; looking, and compiling the program
that looks, goes on beside it, on another if there is one.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock


def measure(env: str, episodes: int, beliefs: bool) -> dict[str, float]:
    import surveyor as sv
    from surveyor.runs import api
    from surveyor.runs.recorder import Beliefs

    looking = 0.0

    @contextlib.contextmanager
    def timed() -> Iterator[None]:
        nonlocal looking
        began = time.perf_counter()
        yield
        looking += time.perf_counter() - began

    class Timed(Beliefs):
        def start(self, run: sv.Run) -> None:
            with timed():
                super().start(run)

        def chunk(self, run: sv.Run) -> None:
            with timed():
                super().chunk(run)

        def end(self, run: sv.Run) -> None:
            with timed():
                super().end(run)

    with tempfile.TemporaryDirectory() as out, mock.patch.object(api, "Beliefs", Timed):
        began = time.perf_counter()
        run = sv.train(
            "su-plus", env, episodes=episodes, stop_when_solved=False, out=out, beliefs=beliefs
        )
        seconds = time.perf_counter() - began
        found = list(Path(run.result["path"]).glob("beliefs/*.npz"))
        size = sum(path.stat().st_size for path in found)
    return {"seconds": seconds, "looks": len(found), "megabytes": size / 1e6, "looking": looking}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Chain-160")
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--one", choices=("with", "without"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.env, options.episodes, options.one == "with")))
        return
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.repeats):
        for kind in ("without", "with"):
            words = [sys.executable, __file__, "--one", kind, "--env", options.env]
            words += ["--episodes", str(options.episodes)]
            answer = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            found = json.loads(answer.splitlines()[-1])
            if kind not in best or found["seconds"] < best[kind]["seconds"]:
                best[kind] = found
    with_, without = best["with"], best["without"]
    print(f"{options.env}, {options.episodes} episodes: {without['seconds']:.1f} s without")
    print(f"{with_['seconds']:.1f} s with {with_['looks']:.0f} looks, {with_['megabytes']:.2f} MB")
    print(f"ratio {with_['seconds'] / without['seconds']:.3f}")
    share = with_["looking"] / with_["seconds"]
    print(f"training waited {with_['looking']:.2f} s of that for looks: {share:.1%}")


if __name__ == "__main__":
    main()
