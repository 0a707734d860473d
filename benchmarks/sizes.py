"""Every size with its preset: who solves it, and when.

    python benchmarks/sizes.py Chain 2-60 --seeds 3
    python benchmarks/sizes.py Tree 2-30,35,40-250:10 --seeds 3

Prints one line a size, as Markdown, and exits with 1 if any run was not solved.
"""

import argparse
import statistics
import sys
import time

import surveyor as sv


def sizes(text: str) -> list[int]:
    """`2-5,10-30:10` is 2, 3, 4, 5, 10, 20, 30."""
    found = []
    for part in text.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        found += range(int(first), int(last or first) + 1, int(step or 1))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Every size with its preset.")
    names = [family.name for family in sv.envs.FAMILIES if family.by_episodes]
    parser.add_argument("family", choices=names)
    parser.add_argument("sizes", type=sizes)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    began, unsolved = time.monotonic(), 0
    print("| environment | solved | solved at | first success | median solved at |")
    print("|---|---|---|---|---|")
    for size in options.sizes:
        runs = [
            sv.train("su-plus", f"{options.family}-{size}", seed=s) for s in range(options.seeds)
        ]
        solved = [run.solved_at for run in runs if run.solved_at is not None]
        unsolved += len(runs) - len(solved)
        median = statistics.median(solved) if len(solved) == len(runs) else "–"
        print(
            f"| {runs[0].config.env} | {len(solved)} of {len(runs)} "
            f"| {', '.join(str(run.solved_at) for run in runs)} "
            f"| {', '.join(str(run.first_success) for run in runs)} | {median} |",
            flush=True,
        )
    print(f"\n{unsolved} runs unsolved; {time.monotonic() - began:.0f} s.")
    return 1 if unsolved else 0


if __name__ == "__main__":
    sys.exit(main())
