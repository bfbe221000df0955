"""Curves of groups: a middle and a band for each statistic, and each seed's own, at no more points than a screen shows.

Seeds are compared at the same episode. Over environment steps or time a point stands where its group's seeds were on
average after that episode, so that the values are the same over every axis and nothing is interpolated.
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
# What a page may hold of curves beside the ones that it opens with: resampling and reading them takes time.
POINTS_OF_RUNS = 100_000
MOST_SEED_POINTS, FEWEST_SEED_POINTS = 200, 24  # of each seed's own line, which is thin and lies behind the others


class Seeds(NamedTuple):
    """The seeds' own curves, at some of the points of their group's."""

    seeds: tuple[int, ...]
    every: int  # at each so manieth point, and at the last
    values: NDArray[np.float64]  # [seed, point]


class Line(NamedTuple):
    """A group's curve in one metric."""

    group: int  # its place among the groups of the chart
    num_seeds: int
    episodes: NDArray[np.int64]  # [point]
    bands: dict[str, Band]  # by statistic
    elsewhere: Mapping[Across, NDArray[np.float64]] = MappingProxyType({})  # where points are over other axes
    seeds: Seeds | None = None  # of more than one

    def over(self, across: Across) -> NDArray[np.float64]:
        """Return where the points are over an axis."""
        return self.episodes.astype(np.float64) if across is Across.EPISODES else self.elsewhere[across]


class Points(NamedTuple):
    """How many points curves may have."""

    line: int = MOST_POINTS
    seed: int = MOST_SEED_POINTS


ALL_POINTS = Points(line=sys.maxsize)


def lines_of(
    groups: Sequence[Group],
    name: str,
    most: Points = Points(),  # noqa: B008 - it is immutable
    statistics: Mapping[str, Statistic] = MappingProxyType(STATISTICS),
) -> list[Line]:
    """Return the curve of each group that has the metric."""
    lines = (_line(place, group, name, most, statistics) for place, group in enumerate(groups))
    return [line for line in lines if line is not None]


def points_for_others(num_runs: int, num_metrics: int) -> Points:
    """Return how many points curves may have that a page does not open with."""
    affordable = POINTS_OF_RUNS // max(1, num_runs * num_metrics)
    return Points(
        max(FEWEST_POINTS, min(MOST_POINTS, affordable)), max(FEWEST_SEED_POINTS, min(MOST_SEED_POINTS, affordable))
    )


def thinned(num_points: int, most: int) -> NDArray[np.intp]:
    """Return which points to draw: all, or evenly spaced ones with the first and the last among them."""
    if num_points <= most:
        return np.arange(num_points)
    return np.unique(np.linspace(0, num_points - 1, most).round().astype(np.intp))


def every_so_many(num_points: int, every: int) -> NDArray[np.intp]:
    """Return each so manieth point, and the last."""
    return np.unique(np.append(np.arange(0, num_points, every), num_points - 1))


def common_points(group: Group, name: str) -> tuple[list[Run], NDArray[np.int64], NDArray[np.float64]]:
    """Return the runs of a group that have a metric, the episodes at which all have it, and `[seed, point]` of it."""
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
    statistics = statistics if is_judged_by else {"mean": mean}  # resampling the others twice takes its time
    bands = {statistic: band(values, function) for statistic, function in statistics.items()}
    return Line(place, len(runs), episodes, bands, elsewhere(runs, episodes), _seeds(runs, values, most.seed))


def elsewhere(runs: Sequence[Run], episodes: NDArray[np.int64]) -> dict[Across, NDArray[np.float64]]:
    """Return where runs are on average after these episodes, over each axis of which all of them tell."""
    places = {across: np.mean([run.place(across, episodes) for run in runs], axis=0) for across in _OTHERS}
    return {across: each for across, each in places.items() if np.isfinite(each).all() and each[-1] > 0}


_OTHERS = (Across.STEPS, Across.TIME)


def _seeds(runs: Sequence[Run], values: NDArray[np.float64], most: int) -> Seeds | None:
    if len(runs) < 2:
        return None
    every = math.ceil(values.shape[1] / most)
    return Seeds(tuple(run.seed for run in runs), every, values[:, every_so_many(values.shape[1], every)])
