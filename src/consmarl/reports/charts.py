"""Draw line charts as SVG whose text keeps its size at any width.

Labels and grid lines are positioned in percent and only the curves are stretched, so one drawing fits screens of any
width, with and without scripts. The page's script redraws a chart with other metrics from `payloads.payload`; axes,
labels and sentences are computed only here.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from consmarl.metrics import Metric, place_of
from consmarl.reports.across import Across
from consmarl.reports.axes import Axis, episode_axis, spread, time_axis, value_axis
from consmarl.reports.curves import Line
from consmarl.reports.statistics import Band, Interval
from consmarl.reports.words import number, sentence, short_count, with_bounds

LABEL_GAP = 0.055  # of the chart's height: one line of text
MOST_END_LABELS, LONGEST_END_LABEL = 8, 22
WORDS_FOR = {"mean": "mean over seeds", "iqm": "interquartile mean over seeds", "value": ""}
SIDE = 1000  # side of the square in which curves are drawn before stretching


class Frame(NamedTuple):
    """The y-axis of a chart and the positions of its end labels."""

    y: Axis
    ends: list[float]  # each line's end label, from 0 at the bottom to 1


class View(NamedTuple):
    """A chart of one statistic."""

    frame: Frame
    with_seeds: Frame  # the same with room for each seed's line
    says: str  # description for screen readers


class Chart(NamedTuple):
    """The curves of one metric for several groups."""

    metric: Metric
    decimals: int
    lines: list[Line]
    views: dict[str, View]


class Figure(NamedTuple):
    """Charts among which the reader of a page can choose; the first is shown initially."""

    id: str
    x: dict[Across, Axis]  # the x-axes to choose from
    across: Across  # the x-axis shown initially
    where: str
    labels: list[str]  # one per group
    styles: list[int]  # one per group: index of its colour and dash
    charts: list[Chart]

    @property
    def views(self) -> list[str]:
        """The statistics that at least one chart offers."""
        return list(dict.fromkeys(view for chart in self.charts for view in chart.views))

    @property
    def families(self) -> list[tuple[str, list[tuple[int, Chart]]]]:
        """The charts and their numbers, by family of metrics."""
        numbered = list(enumerate(self.charts))
        families = [each.metric.family for each in sorted(self.charts, key=lambda each: place_of(each.metric.family))]
        return [
            (family, [each for each in numbered if each[1].metric.family == family])
            for family in dict.fromkeys(families)
        ]

    @property
    def has_seeds(self) -> bool:
        """Whether any group has more than one seed."""
        return any(line.seeds is not None for chart in self.charts for line in chart.lines)

    @property
    def widest_end(self) -> int:
        """Length of the longest end label, in characters."""
        return max(len(end_label(label)) for label in self.labels)

    @property
    def has_end_labels(self) -> bool:
        """Whether there are few enough lines for end labels, and the shortened labels are still distinct."""
        return len(self.labels) <= MOST_END_LABELS and len(set(map(end_label, self.labels))) == len(self.labels)


def figure(
    id: str,
    groups: Sequence[tuple[str, int]],
    charts: Iterable[tuple[Metric, list[Line]]],
    where: str,
    across: Across = Across.EPISODES,
) -> Figure | None:
    """Return a figure of groups, each (label, style), and metrics; None if no metric has lines.

    The initial x-axis is `across` if all lines have positions on it, and episodes otherwise.
    """
    labels = [label for label, _ in groups]
    drawn = [_chart(metric, lines, labels, where) for metric, lines in charts if lines]
    if not drawn:
        return None
    axes = _axes([line for chart in drawn for line in chart.lines])
    first = across if across in axes else Across.EPISODES
    return Figure(id, axes, first, where, labels, [style for _, style in groups], drawn)


def _axes(lines: Sequence[Line]) -> dict[Across, Axis]:
    """Return the x-axes on which all lines have positions."""
    known = [each for each in Across if each is Across.EPISODES or all(each in line.elsewhere for line in lines)]
    last = {each: max(float(line.over(each)[-1]) for line in lines) for each in known}
    return {
        each: time_axis(end) if each is Across.TIME else episode_axis(end, short_count) for each, end in last.items()
    }


def _chart(metric: Metric, lines: list[Line], labels: Sequence[str], where: str) -> Chart:
    statistics = list(lines[0].bands)
    every = np.concatenate([np.concatenate(line.bands[statistic]) for line in lines for statistic in statistics])
    decimals = decimals_of_range(every)
    views = {statistic: _view(metric, lines, labels, where, statistic, decimals) for statistic in statistics}
    return Chart(metric, decimals, lines, views)


def _view(metric: Metric, lines: list[Line], labels: Sequence[str], where: str, statistic: str, decimals: int) -> View:
    bands = [line.bands[statistic] for line in lines]
    ends = [_last_finite(band) for band in bands]
    spanned = np.concatenate([np.concatenate(band) for band in bands])
    of_seeds = [line.seeds.values.ravel() for line in lines if line.seeds is not None]
    values = "; ".join(
        f"{labels[line.group]} {with_bounds(end, decimals)} at episode {number(float(line.episodes[-1]), 0)}"
        for line, end in zip(lines, ends, strict=True)
    )
    words = ", ".join(filter(None, (f"{metric.title} ({metric.family.lower()}) {where}", WORDS_FOR[statistic])))
    return View(
        _frame(spanned, ends),
        _frame(np.concatenate([spanned, *of_seeds]), ends),
        f"{sentence(words)} Final values: {values}.",
    )


def _frame(spanned: NDArray[np.float64], ends: Sequence[Interval]) -> Frame:
    y = value_axis(spanned.tolist())
    places = [y.share(end.estimate) if math.isfinite(end.estimate) else 0.0 for end in ends]
    return Frame(y, spread(places, LABEL_GAP))


def decimals_of_range(values: NDArray[np.float64]) -> int:
    """Return how many decimals resolve 1/500 of the range, the smallest difference that a chart can show."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0
    size = float(finite.max() - finite.min()) or float(np.abs(finite).max()) or 1.0
    return int(min(8, max(0, math.ceil(-math.log10(size / 500)))))


def _last_finite(band: Band) -> Interval:
    known = np.flatnonzero(np.isfinite(band.estimate))
    if not len(known):
        return Interval(math.nan, math.nan, math.nan)
    return Interval(*(float(each[known[-1]]) for each in band))


def svg(figure: Figure) -> Markup:
    """Return an SVG of the figure's first chart."""
    chart = figure.charts[0]
    statistic = figure.views[0]
    view = chart.views[statistic]
    pieces = [
        Markup('<svg class="canvas" role="img" aria-label="{}">').format(view.says),
        Markup('<g class="grid" aria-hidden="true">{}</g>').format(_grid(figure.x[figure.across], view.frame.y)),
        Markup('<svg class="curves" viewBox="0 0 {0} {0}" preserveAspectRatio="none" aria-hidden="true">').format(SIDE),
        *(_curve(figure, line, statistic, view.frame.y) for line in chart.lines),
        Markup('</svg><g class="ends" aria-hidden="true">{}</g>').format(_end_labels(figure, chart, view)),
        Markup('<g class="marks" aria-hidden="true"></g></svg>'),
    ]
    return Markup("").join(pieces)


def _grid(x: Axis, y: Axis) -> Markup:
    rows = [
        Markup(
            '<line x1="0" x2="100%" y1="{0}" y2="{0}"/><text class="y" x="-8" y="{0}" dy="0.35em">{1}</text>'
        ).format(percent(1 - y.share(value)), label)
        for value, label in y.ticks
    ]
    columns = [
        Markup('<text class="x" x="{}" y="100%" dy="1.6em">{}</text>').format(percent(x.share(value)), label)
        for value, label in x.ticks
    ]
    ground = Markup('<line class="ground" x1="0" x2="100%" y1="100%" y2="100%"/>')
    return Markup("").join([*rows, *columns, ground])


def _curve(figure: Figure, line: Line, statistic: str, y: Axis) -> Markup:
    band = line.bands[statistic]
    across = [figure.x[figure.across].share(place) for place in line.over(figure.across).tolist()]
    area = area_path(across, [y.share(value) for value in band.low], [y.share(value) for value in band.high])
    middle = line_path(across, [y.share(value) for value in band.estimate])
    style = f"s{figure.styles[line.group]}"
    return Markup('<g class="{}" data-group="{}"><path class="band" d="{}"/><path class="line" d="{}"/></g>').format(
        style, line.group, area, middle
    )


def _end_labels(figure: Figure, chart: Chart, view: View) -> Markup:
    if not figure.has_end_labels:
        return Markup("")
    labels = [
        Markup('<text class="s{}" data-group="{}" x="100%" dx="10" y="{}" dy="0.35em">{}</text>').format(
            figure.styles[line.group], line.group, percent(1 - place), end_label(figure.labels[line.group])
        )
        for line, place in zip(chart.lines, view.frame.ends, strict=True)
    ]
    return Markup("").join(labels)


def end_label(label: str) -> str:
    """Return a label, shortened to fit at the end of its line; the legend shows the full label."""
    return label if len(label) <= LONGEST_END_LABEL else label[: LONGEST_END_LABEL - 1].rstrip(" ,") + "…"


def percent(share: float) -> str:
    """Return a share as a percentage for SVG."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


def line_path(across: Sequence[float], up: Sequence[float]) -> str:
    """Return a path through points given as shares of width and height, with a gap at each non-finite point."""
    parts = [list(map(_point, part_across, part_up)) for part_across, part_up in _finite(across, up)]
    return "".join("M" + " ".join(points) + ("h0" if len(points) == 1 else "") for points in parts)  # h0 draws a dot


def area_path(across: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    """Return the path around the area between two curves, with a gap at each non-finite point."""
    pieces = []
    for part_across, part_low, part_high in _finite(across, low, high):
        there = map(_point, part_across, part_high)
        back = map(_point, reversed(part_across), reversed(part_low))
        pieces.append("M" + " ".join((*there, *back)) + "Z")
    return "".join(pieces)


def _finite(*columns: Sequence[float]) -> Iterable[tuple[Sequence[float], ...]]:
    """Yield the columns of each contiguous stretch of rows in which all values are finite."""
    rows: list[tuple[float, ...]] = []
    for row in [*zip(*columns, strict=True), (math.nan,)]:
        if all(map(math.isfinite, row)):
            rows.append(row)
        elif rows:
            yield tuple(zip(*rows, strict=True))
            rows = []


def _point(across: float, up: float) -> str:
    return f"{SIDE * across:.1f},{SIDE * (1 - up):.1f}".replace(".0", "")
