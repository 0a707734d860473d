"""Pictures. Needs the `plots` extra: pip install "surveyor[plots]"."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surveyor.errors import SurveyorError
from surveyor.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from surveyor.paper.checks import Check
    from surveyor.paper.studies import Outcome

BLUE, ORANGE, GREY = "#1f5fa8", "#e07b1a", "#8a8a8a"
RED, GREEN = "#c0392b", "#2e8b57"
COLOURS = (BLUE, ORANGE, GREEN, RED, "#7d4fa3", "#8c6d46", "#3aa6b9", "#c45a95", GREY)


def require_matplotlib() -> None:
    """Say what to install, where Matplotlib is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SurveyorError('Pictures need Matplotlib: pip install "surveyor[plots]".')


def learning(run: Run, path: str | Path) -> Path:
    """How a run learnt: by episodes the depth reached and the greedy tests, by steps the return and
    how uncertain it is."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.4])
    if run.config.steps is None:
        _depth(above, run)
        _tests(below, run)
        for axes in (above, below):
            _events(axes, run)
        above.legend(loc="lower right", frameon=False)
    else:
        _over_steps(above, run, "return", "return of training episodes")
        known = [name for name in ("posterior_trace", "q_loss") if name in run.latest]
        _over_steps(below, run, (known or ["length"])[0], LABELS[(known or ["length"])[0]])
        below.set_xlabel("steps")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{run.config.env}, {type(run.agent).__name__}, seed {run.config.seed}")
    return save(figure, path)


LABELS = {"posterior_trace": "trace of Σ", "q_loss": "Q loss", "length": "episode length"}


def _over_steps(axes: "Axes", run: Run, name: str, label: str) -> None:
    points = [(r["step"], r[name]) for r in run.metrics if r.get(name) is not None]
    if points:
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, color=BLUE, lw=1.2)
    axes.set_ylabel(label)


def figure2(outcomes: list["Outcome"], order: list[str], path: Path) -> Path:
    """Median episodes to learn the tree, a column for each algorithm; below, at what cost."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.3 * len(order) + 0.6, 5.6), layout="constrained")
    grid = figure.subplots(2, len(order), sharey="row", sharex="col", squeeze=False)
    budget = max(outcome.budget for outcome in outcomes)
    for column, name in enumerate(order):
        above, below = grid[:, column]
        mine = sorted((o for o in outcomes if o.algorithm == name), key=lambda o: o.size)
        sizes = [o.size for o in mine]
        above.scatter(
            sizes,
            [budget if o.median is None else o.median for o in mine],
            color=[_success_colour(o) for o in mine],
            s=22,
            zorder=3,
        )
        line = np.linspace(1, max(sizes) + 1, 300)
        uniform = np.log(2) * 2.0 ** np.minimum(line, 60)
        above.plot(line, uniform, color=GREY, ls="--", lw=1)
        above.set_ylim(5, 1.6 * budget)
        above.set_yscale("log")
        above.set_title(name, fontsize=10)
        below.plot(sizes, [o.mean("seconds") for o in mine], "o-", color=GREY, ms=4, lw=1)
        below.set_yscale("log")
        below.set_xlabel("tree size L")
    grid[0, 0].set_ylabel("median episodes to learn")
    grid[1, 0].set_ylabel("seconds of training a run")
    marks = {"all seeds": BLUE, "some": ORANGE, "none": RED}
    for label, colour in marks.items():
        grid[0, -1].scatter([], [], color=colour, s=22, label=label)
    grid[0, -1].plot([], [], color=GREY, ls="--", lw=1, label="uniform")
    grid[0, -1].legend(fontsize=8, frameon=False, loc="lower right")
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
    return save(figure, path)


def figure3(
    outcomes: list["Outcome"], slopes: dict[str, tuple[float, float] | None], path: Path
) -> Path:
    """Learning time against the chain's size, in log-log, with fitted and published lines."""
    from matplotlib.figure import Figure

    from surveyor.paper import fig3

    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    sizes = np.array(sorted({o.size for o in outcomes}), float)
    for (name, fit), colour in zip(slopes.items(), (BLUE, GREEN, ORANGE), strict=True):
        mine = [o for o in outcomes if o.algorithm == name]
        for o in mine:
            times = [run["solved_at"] for run in o.runs if run["solved_at"] is not None]
            axes.scatter([o.size] * len(times), times, color=colour, s=8, alpha=0.4, linewidths=0)
        x, y = fig3.medians(outcomes, name)
        label = name if fit is None else f"{name}: slope {fit[0]:.2f}"
        axes.plot(x, y, "o", color=colour, label=label)
        if fit is not None:
            axes.plot(x, 10 ** fit[1] * x ** fit[0], color=colour, lw=1)
    axes.plot(sizes, fig3.paper_line(sizes), color=GREY, ls="--", label="paper, SU: slope 2.5")
    x, y = fig3.medians(outcomes, "Bootstrap+Prior")
    if len(x):
        cubic = y[0] * (sizes / x[0]) ** fig3.BOOTSTRAP_SLOPE
        label = "slope 3.0, published for Bootstrap+Prior"
        axes.plot(sizes, cubic, color=ORANGE, ls=":", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [size for size in sizes if size in (10, 20, 40, 80, 160, 240)]
    axes.set_xticks(ticks, [f"{size:g}" for size in ticks])
    axes.minorticks_off()
    axes.set_xlabel("chain size L")
    axes.set_ylabel("learning time T (episodes)")
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return save(figure, path)


def figure4(
    differences: dict[str, dict[str, tuple[float, float | None, float | None]]],
    clip: float,
    path: Path,
) -> Path:
    """By how much SU is ahead (blue) or behind (red) of each other algorithm, on every game, with
    95% where that is known."""
    from matplotlib.figure import Figure

    games = max(len(gaps) for gaps in differences.values())
    size = (max(5.0, 1.0 + 0.22 * games), 2.4 * len(differences) + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(f"Human-normalised; bars end at ±{clip}", fontsize=9)
    panels = figure.subplots(len(differences), 1, squeeze=False)[:, 0]
    for axes, (label, gaps) in zip(panels, differences.items(), strict=True):
        ordered = sorted(gaps.items(), key=lambda pair: -pair[1][0])
        names = [game.replace("_", " ") for game, _ in ordered]
        heights = np.clip([gap for _, (gap, _, _) in ordered], -clip, clip)
        axes.bar(names, heights, color=[BLUE if height > 0 else RED for height in heights])
        for place, (_, (_, low, high)) in enumerate(ordered):
            if low is not None and high is not None:
                axes.plot([place, place], np.clip([low, high], -clip, clip), color="black", lw=1)
        axes.axhline(0, color=GREY, lw=0.8)
        axes.set_ylim(-clip, clip)
        axes.set_ylabel(f"SU −\n{label}", fontsize=9)
        axes.tick_params(axis="x", labelrotation=90, labelsize=7)
        axes.margins(x=0.005)
        axes.spines[["top", "right"]].set_visible(False)
    return save(figure, path)


def propositions(checks: list["Check"], path: Path) -> Path:
    """Every prediction as a point: measured against predicted, with intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    groups = {
        "1: P(all UP) ≤ 2^-L": [c for c in checks if c.proposition == "1"],
        "2: P(action), Gumbel = model": [
            c for c in checks if c.proposition == "2" and c.relation == "="
        ],
        "3: P(not UP) ≤ ε_N": [c for c in checks if c.proposition == "3"],
        "4, 5: median episodes ≤ bound": [c for c in checks if c.proposition in ("4", "5")],
    }
    for axes, (title, group) in zip(figure.subplots(1, len(groups)), groups.items(), strict=True):
        shown = [c for c in group if 0 < c.measured < np.inf and c.predicted < np.inf]
        x, y = [c.predicted for c in shown], [c.measured for c in shown]
        errors = [
            [c.measured - c.low for c in shown],
            [min(c.high, 1e9) - c.measured for c in shown],
        ]
        axes.errorbar(x, y, yerr=errors, fmt="o", ms=4, color=BLUE, ecolor=GREY, lw=1)
        low, high = min(x + y), max(x + y)
        if high > 10 * low:
            axes.set_xscale("log")
            axes.set_yscale("log")
            low, high = low / 1.5, high * 1.5
        axes.plot([low, high], [low, high], color=GREY, ls="--", lw=1)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("predicted")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("measured")
    return save(figure, path)


def _success_colour(outcome: "Outcome") -> str:
    """As in the paper's caption: blue if all seeds succeeded, orange if some, red if none."""
    if outcome.solved == len(outcome.runs):
        return BLUE
    return ORANGE if outcome.solved else RED


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a picture, and make the folder for it."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise SurveyorError(f"The picture '{path}' cannot be written: {error}.") from None
    return path


def _depth(axes: "Axes", run: Run) -> None:
    env, _ = run.env
    lengths = np.concatenate([record["lengths"] for record in run.metrics])
    returns = np.concatenate([record["returns"] for record in run.metrics])
    episodes = np.arange(1, len(lengths) + 1)
    if np.ptp(lengths):
        values, label = lengths, "steps in the episode"
        axes.plot(
            episodes, np.maximum.accumulate(lengths), color=GREY, lw=1, label="deepest so far"
        )
        axes.axhline(env.horizon, color=GREY, lw=0.8, ls=":")
    else:  # every episode is as long as the next: show what it earned
        values, label = returns, "return of the episode"
    axes.scatter(episodes, values, s=7, color=BLUE, alpha=0.6, linewidths=0, label="training")
    axes.set_ylabel(label)


def _tests(axes: "Axes", run: Run) -> None:
    tests = [record for record in run.metrics if record["test_return"] is not None]
    axes.step(
        [record["episode"] for record in tests],
        [record["test_return"] for record in tests],
        where="post",
        color=BLUE,
    )
    axes.axhline(run.env[0].optimal_return, color=GREY, lw=0.8, ls=":")
    axes.set_ylabel("return of the\ngreedy policy")
    axes.set_xlabel("training episode")


def _events(axes: "Axes", run: Run) -> None:
    if run.first_success is not None:
        label = f"first success: {run.first_success}"
        axes.axvline(run.first_success, color=ORANGE, lw=1.2, ls="--", label=label)
    if run.solved_at is not None:
        label = f"optimal from here on: {run.solved_at}"
        axes.axvline(run.solved_at, color=ORANGE, lw=1.8, label=label)
