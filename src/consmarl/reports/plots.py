"""Draw curves, bars and weights on matplotlib axes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from consmarl.reports import weights
from consmarl.reports.achievements import BarPanel
from consmarl.reports.across import Across
from consmarl.reports.axes import time_axis
from consmarl.reports.colours import CYCLE, colours_of
from consmarl.reports.curves import Line
from consmarl.reports.words import uncapitalised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

X_LABELS = {Across.EPISODES: "episodes", Across.STEPS: "environment steps", Across.TIME: "training time"}
HATCHES = {"-": "", "--": "///", ":": "...", "-.": "xxx"}  # of bars, by the dash of the same group's line


class Stroke(NamedTuple):
    """The colour and dash of a group; dashes distinguish groups if there are more of them than colours."""

    colour: str
    dash: str


def strokes_of(labels: Iterable[str]) -> dict[str, Stroke]:
    """Return a stroke for each label; the first 36 are distinct."""
    strokes: dict[str, Stroke] = {}
    for label, colour in colours_of(labels).items():
        num_alike = sum(stroke.colour == colour for stroke in strokes.values())
        strokes[label] = Stroke(colour, list(HATCHES)[num_alike % len(HATCHES)])
    return strokes


def draw_curves(
    axes: "Axes", curves: Mapping[str, Line], strokes: Mapping[str, Stroke], across: Across = Across.EPISODES
) -> None:
    """Draw each label's mean, with a 95 % band if it has more than one seed."""
    for label, line in curves.items():
        (colour, dash), places, bounds = strokes[label], line.over(across), line.bands["mean"]
        if line.num_seeds > 1:
            axes.fill_between(places, bounds.low, bounds.high, facecolor=colour, alpha=0.15, linewidth=0)
            for edge in (bounds.low, bounds.high):  # edges distinguish bands that overlap
                axes.plot(places, edge, color=colour, alpha=0.45, linewidth=0.5)
        axes.plot(places, bounds.estimate, dash, color=colour, linewidth=1.6, label=label)
    axes.set_xlabel(X_LABELS[across])
    if across is Across.TIME:
        ticks = time_axis(max(float(line.over(across)[-1]) for line in curves.values())).ticks
        axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
    else:
        _tick_thousands(axes)
    axes.margins(x=0.02)


def draw_bars(axes: "Axes", panels: Sequence[BarPanel], labels: Sequence[str], strokes: Mapping[str, Stroke]) -> None:
    """Draw each group's counters side by side, with 95 % intervals and a dot per seed."""
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        place = (number - (len(labels) - 1) / 2) * width
        drawn = [(index + place, bar) for index, panel in enumerate(panels) for bar in panel.bars if bar.label == label]
        colour, dash = strokes[label]
        axes.bar(
            [x for x, _ in drawn], [bar.value.estimate for _, bar in drawn], 0.9 * width, label=label,
            color=colour, alpha=0.75, hatch=HATCHES[dash], edgecolor="white", linewidth=0,
        )  # fmt: skip
        for x, bar in drawn:
            num_seeds = len(bar.seeds)
            if num_seeds > 1:
                axes.vlines(x, *bar.value[1:], colors="#222222", linewidth=1.1)
            beside = x + np.linspace(-0.2, 0.2, num_seeds + 2)[1:-1] * width  # so equal dots do not overlap
            axes.plot(
                beside, bar.seeds, "o", color=colour, markeredgecolor="white", markersize=3.5, markeredgewidth=0.6
            )
    between = "\n" if len(panels) > 3 else " "  # so that names do not overlap
    axes.set_xticks(range(len(panels)), [uncapitalised(panel.title).replace(" ", between) for panel in panels])
    axes.grid(visible=False, axis="x")


def draw_weights(axes: "Axes") -> None:
    """Draw the weight of negative knowledge for the paper's three shapes."""
    lines = zip(weights.shape_labels(), weights.weight_lines(), CYCLE, strict=False)
    for label, line, colour in sorted(lines, key=lambda each: -each[1].bands["value"].estimate[-1]):  # top to bottom
        axes.plot(line.episodes, line.bands["value"].estimate, color=colour, linewidth=1.6, label=label)
    axes.set_xlabel(f"episode x (sharing starts at {weights.START:,})")
    axes.set_ylabel(uncapitalised(weights.METRIC.title))
    _tick_thousands(axes)
    axes.set_ylim(0, 1.02)


def _tick_thousands(axes: "Axes") -> None:
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
