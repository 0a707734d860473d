"""Compare two checkouts: train every agent with its default preset, the paper's SU with both of its
presets, and report what differs.

    python benchmarks/compare.py BEFORE AFTER [--out DIR] [--jobs 2]

Each checkout trains in processes of its own. Results are kept in DIR, so a second call only
trains what is missing. Numbers are compared to the bit; times and paths are left out.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

TABULAR = ("su-plus", "ideal-su", "bootdqn", "ube", "bdqn", "dqn", "psrl", "uniform")
BY_STEPS = ("su-plus", "bootdqn", "ube", "bdqn", "dqn", "uniform")
BUDGETS = {
    "Tree-30": (TABULAR, ["--episodes", "1000"]),
    "Chain-15": (TABULAR, ["--episodes", "1000"]),
    "MinAtar/Breakout": (BY_STEPS, ["--steps", "5000"]),
    "CartPole-v1": (BY_STEPS, ["--steps", "5000"]),
    "FrozenLake-v1": (BY_STEPS, ["--steps", "3000"]),
    "ALE/Freeway": (BY_STEPS, ["--frames", "8000"]),
}
LEARNING = ["--agent.warmup", "1000", "--agent.replay-capacity", "10000"]
"""More options of second runs on MinAtar and Atari, whose few steps include gradient steps."""
RENAMED = {"su-plus": "su"}
"""Names that agents have in a checkout from before SU+ had a name of its own."""
IGNORED = ("seconds", "steps_per_second", "path")


def cases() -> list[tuple[str, str, list[str]]]:
    """Return environment, agent and options of every run."""
    found = [(env, a, more) for env, (agents, more) in BUDGETS.items() for a in agents]
    learners = [agent for agent in BY_STEPS if agent != "uniform"]
    for env in ("MinAtar/Breakout", "ALE/Freeway"):
        found += [(env, agent, [*BUDGETS[env][1], *LEARNING]) for agent in learners]
    for env in ("Tree-30", "Chain-15"):
        found += [(env, "su", [*BUDGETS[env][1], "--preset", p]) for p in ("released", "text")]
    return found


def train(checkout: Path, out: Path, env: str, agent: str, more: list[str]) -> dict[str, object]:
    """Train one run with the code of a checkout; return its result and its last record."""
    key = "-".join([env, agent, *more]).replace("/", "-")
    kept = out / f"{key}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    source = checkout / "src"
    known = (source / "surveyor/agents/su_plus.py").exists()
    name = agent if known else RENAMED.get(agent, agent)
    if not known and "--preset" in more:  # released_tree in place of released
        more = [*more[:-1], f"{more[-1]}_{env.partition('-')[0].lower()}"]
    command = [sys.executable, "-m", "surveyor.cli", "train", env, "--agent", name, *more]
    command += ["--json", "--no-beliefs", "--out", str(out / "runs")]
    environment = {**os.environ, "PYTHONPATH": str(source), "NPROC": "1"}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    if answer.returncode:
        return {"error": answer.stderr.strip().splitlines()[-1:]}
    result = json.loads(answer.stdout.splitlines()[-1])["runs"][0]
    lines = (Path(result["path"]) / "metrics.jsonl").read_text().splitlines()
    found = {"result": result, "records": len(lines), "last": json.loads(lines[-1])}
    kept.write_text(json.dumps(found))
    return found


def differences(before: object, after: object, place: str = "") -> list[str]:
    """Return every number that is in both and differs, and every name that one of them lacks."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in {**before, **after} if name not in IGNORED]
        return [
            line
            for name in names
            for line in differences(before.get(name), after.get(name), f"{place} {name}")
        ]
    return [] if before == after else [f"{place.strip()}: {before} → {after}"]


def main() -> int:
    """Train in both checkouts and print a line for each run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--out", type=Path, default=Path("compare"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wanted = [(side, case) for case in cases() for side in ("before", "after")]
    if options.before.resolve() == options.after.resolve():  # only to record
        wanted = [(side, case) for side, case in wanted if side == "before"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tasks = {}
        for side, (env, agent, more) in wanted:
            out = (options.out / side).resolve()
            out.mkdir(parents=True, exist_ok=True)
            checkout = getattr(options, side).resolve()
            key = env, agent, tuple(more)
            tasks[side, key] = pool.submit(train, checkout, out, env, agent, more)
        differ = 0
        for side, key in tasks:
            if side == "before":
                before = tasks[side, key].result()
                after = tasks.get(("after", key), tasks[side, key]).result()
                found = differences(before, after)
                differ += bool(found)
                env, agent, more = key
                learning = " (learning)" if "--agent.warmup" in more else ""
                learning += f" ({more[-1]})" if "--preset" in more else ""
                print(f"{env} {agent}{learning}: {'; '.join(found) or 'the same bits'}", flush=True)
    print(f"{len(tasks) // 2 or 1} runs, {differ} of them differ.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
