"""Curves of groups: an estimate and a band per statistic, and one line per seed, with limited numbers of points.

Seeds are averaged at the same episode. If the x-axis shows environment steps or time, a point's position is the average
over the group's seeds after that episode. So values are the same on every x-axis, and nothing is interpolated.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.metrics import EVALUATED
from consmarl.reports.across import Across
from consmarl.reports.finals import drawn_runs, scalar_curve
from consmarl.reports.runs import Curve, Group, Run
from consmarl.reports.statistics import Band, Statistic, band, interquartile_mean, mean, on_common_episodes

STATISTICS: dict[str, Statistic] = {"mean": mean, "iqm": interquartile_mean}
MOST_POINTS, FEWEST_POINTS = 400, 60
# Limits for the curves that are not shown initially, since resampling them and loading the page take time.
POINTS_OF_RUNS = 100_000
MOST_SEED_POINTS, FEWEST_SEED_POINTS = 200, 24  # of each seed's line, which is thin and in the background


class Seeds(NamedTuple):
    """The curves of single seeds, at a subset of their group's points."""

    seeds: tuple[int, ...]
    every: int  # number of the group's points per point; the last point is always included
    values: NDArray[np.float64]  # [seed, point]


class Line(NamedTuple):
    """A group's curve of one metric."""

    group: int  # index among the chart's groups
    num_seeds: int
    episodes: NDArray[np.int64]  # [point]
    bands: dict[str, Band]  # by statistic
    elsewhere: Mapping[Across, NDArray[np.float64]] = MappingProxyType({})  # positions on other x-axes
    seeds: Seeds | None = None  # None for a single seed

    def over(self, across: Across) -> NDArray[np.float64]:
        """Return the positions of the points on an x-axis."""
        return self.episodes.astype(np.float64) if across is Across.EPISODES else self.elsewhere[across]


class Points(NamedTuple):
    """Maximum numbers of points in a group's line and in a seed's line."""

    line: int = MOST_POINTS
    seed: int = MOST_SEED_POINTS


ALL_POINTS = Points(line=sys.maxsize)


def lines_of(
    groups: Sequence[Group],
    name: str,
    most: Points = Points(),  # noqa: B008 - it is immutable
    statistics: Mapping[str, Statistic] = MappingProxyType(STATISTICS),
) -> list[Line]:
    """Return a curve for each group that has the metric."""
    lines = (_line(place, group, name, most, statistics) for place, group in enumerate(groups))
    return [line for line in lines if line is not None]


def points_for_others(num_runs: int, num_metrics: int) -> Points:
    """Return the maximum numbers of points for curves that are not shown initially."""
    affordable = POINTS_OF_RUNS // max(1, num_runs * num_metrics)
    return Points(
        max(FEWEST_POINTS, min(MOST_POINTS, affordable)), max(FEWEST_SEED_POINTS, min(MOST_SEED_POINTS, affordable))
    )


def thinned(num_points: int, most: int) -> NDArray[np.intp]:
    """Return the indices of the points to draw: all of them, or evenly spaced ones including the first and the last."""
    if num_points <= most:
        return np.arange(num_points)
    return np.unique(np.linspace(0, num_points - 1, most).round().astype(np.intp))


def every_so_many(num_points: int, every: int) -> NDArray[np.intp]:
    """Return the indices of every n-th point and of the last one."""
    return np.unique(np.append(np.arange(0, num_points, every), num_points - 1))


def common_points(group: Group, name: str) -> tuple[list[Run], NDArray[np.int64], NDArray[np.float64]]:
    """Return a group's runs that have a metric, the episodes at which all have it, and its values `[seed, point]`."""
    found: list[tuple[Run, Curve]] = [(run, scalar_curve(run, name)) for run in drawn_runs(group)]
    found = [(run, curve) for run, curve in found if len(curve[0])]
    episodes, values = on_common_episodes([curve for _, curve in found])
    return [run for run, _ in found], episodes, values


def _line(place: int, group: Group, name: str, most: Points, statistics: Mapping[str, Statistic]) -> Line | None:
    runs, episodes, values = common_points(group, name)
    chosen = thinned(len(episodes), most.line)
    if not len(chosen):
        return None
    episodes, values = episodes[chosen], values[:, chosen]
    is_judged_by = name == "return" or name.startswith(EVALUATED)
    statistics = statistics if is_judged_by else {"mean": mean}  # more statistics for every metric would be slow
    bands = {statistic: band(values, function) for statistic, function in statistics.items()}
    return Line(place, len(runs), episodes, bands, elsewhere(runs, episodes), _seeds(runs, values, most.seed))


def elsewhere(runs: Sequence[Run], episodes: NDArray[np.int64]) -> dict[Across, NDArray[np.float64]]:
    """Return the average position of runs after these episodes, on each x-axis for which all of them have data."""
    places = {across: np.mean([run.place(across, episodes) for run in runs], axis=0) for across in _OTHERS}
    return {across: each for across, each in places.items() if np.isfinite(each).all() and each[-1] > 0}


_OTHERS = (Across.STEPS, Across.TIME)


def _seeds(runs: Sequence[Run], values: NDArray[np.float64], most: int) -> Seeds | None:
    if len(runs) < 2:
        return None
    every = math.ceil(values.shape[1] / most)
    return Seeds(tuple(run.seed for run in runs), every, values[:, every_so_many(values.shape[1], every)])
