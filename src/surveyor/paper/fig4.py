"""Figure 4: SU beside each other algorithm, game by game."""

from pathlib import Path

import numpy as np

from surveyor import drawing
from surveyor.drawing import BLUE, GREY, RED
from surveyor.envs.atari import Table
from surveyor.errors import SurveyorError
from surveyor.paper.atari_scores import CHOSEN, Column, Columns, Kind, interval, read
from surveyor.paper.options import AtariTableOptions
from surveyor.sweeps.text import table, write

PRINTED_WINS = {"bootdqn": 36, "ube": 43, "dqn": 42}
"""Games of 49 on which SU is better, by the figure's caption."""
CLIP = 2.5
"""Largest difference that is drawn."""
NOTE = (
    "The caption counts 42 games against DQN: on the published scores SU is better on 41 and as "
    "good on one, Montezuma's Revenge, where both have nothing."
)
DIFFERENCE = "Difference of human-normalised scores"
Gap = tuple[float, float | None, float | None]
"""Difference of mean human-normalised scores, and the ends of its 95% interval."""


def run(options: AtariTableOptions) -> None:
    """Write fig4.json, fig4.md and fig4.png from published scores or own runs."""
    show(options.out, options.human, *read(options))


def show(out: Path, human: Table, columns: Columns, kind: Kind) -> None:
    """Write fig4.json, fig4.md and fig4.png from columns with this kind of score."""
    drawing.require_matplotlib()
    if "su" not in columns:
        raise SurveyorError("Figure 4 compares SU with others, and there is no run of agent su.")
    su, own = columns["su"], kind != "published"
    others = {n: c for n, c in columns.items() if c is not su and set(c.scores) & set(su.scores)}
    if not others:
        raise SurveyorError("There is no game that SU and another algorithm have both played.")
    gaps = {name: differences(su, column, human) for name, column in others.items()}
    rows = [
        [column.label, *wins(su, column), "" if own else f"better on {PRINTED_WINS[name]} of 49"]
        for name, column in others.items()
    ]
    games = [[game, *(_cell(gaps[n].get(game)) for n in others)] for game in sorted(su.scores)]
    first = su.label if own else "SU"
    lines = [f"# Figure 4: {first} beside each other algorithm", ""]
    lines += table(["", "SU better", "equal", "SU worse", "the paper says"], rows)
    about = f"{DIFFERENCE}, with 95% intervals where there are several seeds:"
    lines += ["", CHOSEN.get(kind, NOTE), "", about, ""]
    lines += table(["game", *(column.label for column in others.values())], games)
    found = {n: {game: gap[0] for game, gap in by_game.items()} for n, by_game in gaps.items()}
    labelled = {column.label: gaps[name] for name, column in others.items()}
    write(out, "fig4", found, lines, draw(labelled, first, out / "fig4.png"))


def differences(ours: Column, theirs: Column, human: Table) -> dict[str, Gap]:
    """Return our lead in human-normalised scores on every game that both have played."""
    rng, found = np.random.default_rng(0), {}
    games = [game for game in ours.scores if game in theirs.scores]
    normalised = [column.normalised(games, human) for column in (ours, theirs)]
    for game, mine, other in zip(games, *normalised, strict=True):
        ends = interval(rng, [mine, other], lambda pair: pair[0].mean() - pair[1].mean())
        low, high = (None, None) if ends is None else map(float, ends)
        found[game] = (float(mine.mean() - other.mean()), low, high)
    return found


def wins(ours: Column, theirs: Column) -> tuple[int, int, int]:
    """Return the numbers of games where the first is better, equal and worse, by raw scores."""
    games = [game for game in ours.scores if game in theirs.scores]
    gaps = [np.mean(ours.scores[game]) - np.mean(theirs.scores[game]) for game in games]
    signs = [int(np.sign(gap)) for gap in gaps]
    return signs.count(1), signs.count(0), signs.count(-1)


def _cell(gap: Gap | None) -> str:
    if gap is None:
        return ""
    value, low, high = gap
    return f"{value:+.3f}" if low is None else f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


def draw(gaps: dict[str, dict[str, Gap]], first: str, path: Path) -> Path:
    """Draw SU's lead (blue) or lag (red) by game, a panel for each other algorithm's label."""
    games = max(len(by_game) for by_game in gaps.values())
    figure = drawing.new_figure(max(5.0, 1.0 + 0.22 * games), 2.4 * len(gaps) + 1.2)
    figure.suptitle(f"{DIFFERENCE}; bars end at ±{CLIP}", fontsize=9)
    panels = figure.subplots(len(gaps), 1, squeeze=False)[:, 0]
    for axes, (label, by_game) in zip(panels, gaps.items(), strict=True):
        ordered = sorted(by_game.items(), key=lambda pair: -pair[1][0])
        names = [game.replace("_", " ") for game, _ in ordered]
        heights = np.clip([gap for _, (gap, _, _) in ordered], -CLIP, CLIP)
        axes.bar(names, heights, color=[BLUE if height > 0 else RED for height in heights])
        for place, (_, (_, low, high)) in enumerate(ordered):
            if low is not None and high is not None:
                axes.plot([place, place], np.clip([low, high], -CLIP, CLIP), color="black", lw=1)
        axes.axhline(0, color=GREY, lw=0.8)
        axes.set_ylim(-CLIP, CLIP)
        axes.set_title(f"{first} − {label}", fontsize=9)
        axes.tick_params(axis="x", labelrotation=90, labelsize=7)
        axes.margins(x=0.005)
        drawing.open_frame(axes)
    return drawing.save(figure, path)
