"""What figures are made of: numbers of groups of runs, and how they are drawn on matplotlib's axes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError
from consmarl.report.across import TITLES, Across
from consmarl.report.axes import time_axis
from consmarl.report.colours import CYCLE, colours_of
from consmarl.report.curves import common_points, elsewhere
from consmarl.report.runs import Group
from consmarl.report.statistics import Band, band, interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_COUNTERS = {"episode", "env_steps", "seconds", "episodes_evaluated", "return", "return_error"}  # in result.json
X_LABELS = {Across.EPISODES: "episodes", Across.STEPS: "environment steps", Across.TIME: "training time"}
WEIGHT_SHAPES = {"PGM": 0.0, "FT": 0.3, "Cleanup": -0.5}  # the paper's a
WEIGHT_START, WEIGHT_END = 5_000, 80_000  # episodes
HATCHES = {"-": "", "--": "///", ":": "...", "-.": "xxx"}  # of bars, by the dashes of lines with the same colour


class Stroke(NamedTuple):
    """How a group is drawn; dashes are for when there are more groups than colours."""

    colour: str
    dash: str


@dataclass(frozen=True)
class Series:
    """A group's curve: a statistic at each place along the axis and its 95 % interval."""

    label: str
    places: NDArray[np.float64]
    bounds: Band
    num_seeds: int


@dataclass(frozen=True)
class Counts:
    """A group's counters after training, a value for each seed."""

    label: str
    values: dict[str, list[float]]
    num_seeds: int


def series_of(group: Group, metric: str, across: Across = Across.EPISODES) -> Series | None:
    """Return a group's mean of a metric at the episodes that its runs have in common; None if there are none."""
    runs, episodes, values = common_points(group, metric)
    if not len(episodes):
        return None
    places = {Across.EPISODES: episodes.astype(np.float64), **elsewhere(runs, episodes)}
    if across not in places:
        raise UsageError(
            f"{group.name} cannot be drawn over {across.value}: not all rows of its runs tell {TITLES[across]}."
        )
    return Series(group.label, places[across], band(values), len(runs))


def counts_of(group: Group) -> Counts | None:
    """Return what was counted when a group's finished runs were judged, or None if there are none."""
    results = [run.result for run in group.runs if run.result is not None]
    common = set.intersection(*map(set, results)) - NOT_COUNTERS if results else set()
    names = [name for name in results[0] if name in common] if results else []
    values = {name: [result[name] for result in results if _is_finite(result[name])] for name in names}
    known = {name: each for name, each in values.items() if each}
    return Counts(group.label, known, len(results)) if known else None


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def strokes_of(labels: Iterable[str]) -> dict[str, Stroke]:
    """Return how each label is drawn: of 28 no two are alike."""
    strokes: dict[str, Stroke] = {}
    for label, colour in colours_of(labels).items():
        num_alike = sum(stroke.colour == colour for stroke in strokes.values())
        strokes[label] = Stroke(colour, list(HATCHES)[num_alike % len(HATCHES)])
    return strokes


def draw_curves(
    axes: "Axes", curves: Sequence[Series], strokes: Mapping[str, Stroke], across: Across = Across.EPISODES
) -> None:
    """Draw each group's mean, with a band of 95 % where it has more than one seed."""
    for curve in curves:
        colour, dash = strokes[curve.label]
        if curve.num_seeds > 1:
            low, high = curve.bounds.low, curve.bounds.high
            axes.fill_between(curve.places, low, high, facecolor=colour, alpha=0.15, linewidth=0)
            for edge in (low, high):  # bands lie on one another: their edges tell whose is whose
                axes.plot(curve.places, edge, color=colour, alpha=0.45, linewidth=0.5)
        axes.plot(curve.places, curve.bounds.estimate, dash, color=colour, linewidth=1.6, label=curve.label)
    axes.set_xlabel(X_LABELS[across])
    if across is Across.TIME:
        ticks = time_axis(max(float(curve.places[-1]) for curve in curves)).ticks
        axes.set_xticks([place for place, _ in ticks], [label for _, label in ticks])
    else:
        _tick_thousands(axes)
    axes.margins(x=0.02)


def draw_bars(
    axes: "Axes", counts: Sequence[Counts], strokes: Mapping[str, Stroke], out_of: Mapping[str, int] | None = None
) -> None:
    """Draw each group's counters side by side, 95 % intervals on them, and a dot for each seed.

    With `out_of`, only those counters are drawn, as shares of what there is.
    """
    names = list(out_of or dict.fromkeys(name for each in counts for name in each.values))
    width = 0.8 / len(counts)
    for number, each in enumerate(counts):
        place = (number - (len(counts) - 1) / 2) * width
        drawn = [(index + place, np.array(each.values[name]) / (out_of[name] if out_of else 1))
                 for index, name in enumerate(names) if name in each.values]  # fmt: skip
        colour, dash = strokes[each.label]
        heights = [interval(values).estimate for _, values in drawn]
        axes.bar(
            [x for x, _ in drawn], heights, 0.9 * width, label=each.label,
            color=colour, alpha=0.75, hatch=HATCHES[dash], edgecolor="white", linewidth=0,
        )  # fmt: skip
        for x, values in drawn:
            if len(values) > 1:
                axes.vlines(x, *interval(values)[1:], colors="#222222", linewidth=1.1)
            beside = x + np.linspace(-0.2, 0.2, len(values) + 2)[1:-1] * width  # or equal seeds would hide each other
            axes.plot(beside, values, "o", color=colour, markeredgecolor="white", markersize=3.5, markeredgewidth=0.6)
    between = "\n" if len(names) > 3 else " "  # or names would run into each other
    axes.set_xticks(range(len(names)), [name.replace("_", between) for name in names])
    axes.grid(visible=False, axis="x")


def draw_weights(axes: "Axes") -> None:
    """Draw h(x), the weight of negative knowledge (Eq. 8), for the paper's three shapes."""
    import jax.numpy as jnp  # no other figure needs JAX

    from consmarl.sharing.equations import negative_weight

    episodes = np.linspace(WEIGHT_START, WEIGHT_END, 301)
    colours = dict(zip(WEIGHT_SHAPES, CYCLE, strict=False))
    for world, shape in sorted(WEIGHT_SHAPES.items(), key=lambda each: -each[1]):  # from top to bottom
        weights = np.asarray(negative_weight(jnp.asarray(episodes), WEIGHT_START, shape))
        label = f"{world}, a = {shape:g}".replace("-", "−")
        axes.plot(episodes, weights, color=colours[world], linewidth=1.6, label=label)
    axes.set_xlabel(f"episode x (sharing starts at {WEIGHT_START:,})")
    axes.set_ylabel("weight of negative knowledge, h(x)")
    _tick_thousands(axes)
    axes.set_ylim(0, 1.02)


def _tick_thousands(axes: "Axes") -> None:
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter("{x:,.0f}")
