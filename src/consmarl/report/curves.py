"""Curves of groups over episodes: a middle and a band for each statistic, at no more points than a screen shows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.report.finals import drawn_runs, scalar_curve
from consmarl.report.metrics import EVALUATION, metric
from consmarl.report.runs import Group
from consmarl.report.statistics import Band, Statistic, band, interquartile_mean, mean, on_common_episodes

STATISTICS: dict[str, Statistic] = {"mean": mean, "iqm": interquartile_mean}
MOST_POINTS, FEWEST_POINTS = 400, 60
# What a page may hold of curves beside the ones that it opens with: resampling and reading them takes time.
POINTS_OF_RUNS = 100_000


class Line(NamedTuple):
    """A group's curve in one metric."""

    group: int  # its place among the groups of the chart
    num_seeds: int
    episodes: NDArray[np.int64]  # [point]
    bands: dict[str, Band]  # by statistic


def lines_of(groups: Sequence[Group], name: str, most_points: int = MOST_POINTS) -> list[Line]:
    """Return the curve of each group that has the metric."""
    lines = (_line(place, group, name, most_points) for place, group in enumerate(groups))
    return [line for line in lines if line is not None]


def points_for_others(num_runs: int, num_metrics: int) -> int:
    """Return how many points curves may have that a page does not open with."""
    affordable = POINTS_OF_RUNS // max(1, num_runs * num_metrics)
    return max(FEWEST_POINTS, min(MOST_POINTS, affordable))


def thinned(num_points: int, most: int) -> NDArray[np.intp]:
    """Return which points to draw: all, or evenly spaced ones with the first and the last among them."""
    if num_points <= most:
        return np.arange(num_points)
    return np.unique(np.linspace(0, num_points - 1, most).round().astype(np.intp))


def _line(place: int, group: Group, name: str, most_points: int) -> Line | None:
    curves = [curve for run in drawn_runs(group) if len((curve := scalar_curve(run, name))[0])]
    if not curves:
        return None
    episodes, values = on_common_episodes(curves)
    chosen = thinned(len(episodes), most_points)
    if not len(chosen):
        return None
    is_judged_by = name == "return" or metric(name).family == EVALUATION
    statistics = STATISTICS if is_judged_by else {"mean": mean}  # resampling the others twice takes its time
    bands = {statistic: band(values[:, chosen], function) for statistic, function in statistics.items()}
    return Line(place, len(curves), episodes[chosen], bands)
