"""The page's tables of final returns and of comparisons between groups."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from consmarl.reports import reference
from consmarl.reports.finals import Final, best_first, drawn_runs, final_mean, final_values, finals, finite_curve
from consmarl.reports.reference import Landmark, Recorded
from consmarl.reports.runs import Curve, Group
from consmarl.reports.statistics import (
    Interval,
    Statistic,
    area_under_curve,
    caution,
    episodes_to_reach,
    interquartile_mean,
    interval,
    mean,
    paired_difference,
    probability_of_improvement,
)
from consmarl.reports.words import decimals_for

MOST_GROUPS_IN_PAIRS = 4  # if there are more groups, each is compared only with the best
UNKNOWN = Interval(math.nan, math.nan, math.nan)


class Summary(NamedTuple):
    """A statistic over a group's seeds: a column of the page's table and of its CSV."""

    name: str  # in CSV
    title: str  # on the page
    values_of: Callable[[Group], Sequence[float]]  # one number per seed
    statistic: Statistic = mean


class Reach(NamedTuple):
    """After how many episodes a group's seeds reach a level."""

    median: float | None  # episodes; a seed that never reaches the level counts as infinitely late
    num_reaching: int
    num_seeds: int


class FinalRow(NamedTuple):
    """One group's final returns."""

    label: str
    num_seeds: int  # with a final value
    num_runs: int
    is_provisional: bool  # some of the seeds are unfinished
    mean: Interval
    summaries: dict[str, Interval]  # more statistics, by the names in SUMMARIES
    reach: Reach
    released: tuple[Recorded, ...]

    @property
    def area(self) -> Interval:
        """The area under the curve."""
        return self.summaries["area"]


class FinalTable(NamedTuple):
    """The final returns of all groups in an environment, best first."""

    rows: list[FinalRow]  # with a column for each of SUMMARIES
    level: float  # the level for `reach`
    landmarks: list[Landmark]

    @property
    def decimals(self) -> int:
        """Number of decimals of its returns."""
        return decimals_for(end for row in self.rows for end in row.mean)

    @property
    def has_released(self) -> bool:
        """Whether the authors' release has a return for any group."""
        return any(row.released for row in self.rows)

    @property
    def is_provisional(self) -> bool:
        """Whether some of its runs are unfinished."""
        return any(row.is_provisional for row in self.rows)


class Comparison(NamedTuple):
    """Two groups in an environment, the better one on the left."""

    left: str
    right: str
    num_seeds: int  # of the smaller group
    is_provisional: bool
    gap: float  # difference of the means
    difference: Interval | None  # paired by seed; None if the two have different seeds
    improvement: Interval  # probability that a run on the left beats one on the right
    is_established: bool
    verdict: str


def final_table(groups: Sequence[Group]) -> FinalTable:
    """Return the final returns of the groups in one environment."""
    level = reach_level(groups)
    rows = [_final_row(group, level) for group in best_first(groups)]
    shown = {group.runs[0].method for group in groups if reference.released_for(group)}
    return FinalTable(rows, level, reference.landmarks_for(groups[0].world, shown))


def reach_level(groups: Sequence[Group]) -> float:
    """Return the level used for `Reach`, which all groups reach on average: the lowest of their final means."""
    reached = [final_mean(group).estimate for group in groups]
    return min((each for each in reached if math.isfinite(each)), default=math.nan)


def comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """Return the comparisons of all pairs of groups in one environment, or of each with the best if there are many."""
    ordered = [group for group in best_first(groups) if final_values(group)]
    if len(ordered) <= MOST_GROUPS_IN_PAIRS:
        return [compared(left, right) for left, right in itertools.combinations(ordered, 2)]
    return [compared(ordered[0], other) for other in ordered[1:]]


def compared(left: Group, right: Group) -> Comparison:
    """Compare the final returns of two groups.

    A difference is established if both groups have enough seeds, all runs are finished and both intervals exclude a
    tie. There is no correction for multiple comparisons.
    """
    ours, theirs = finals(left), finals(right)
    left_values, right_values = final_values(left), final_values(right)
    num_seeds = min(len(left_values), len(right_values))
    difference = paired_difference(left_values, right_values)
    improvement = probability_of_improvement(list(left_values.values()), list(right_values.values()))
    is_clear = (difference is None or _excludes(difference, 0.0)) and _excludes(improvement, 0.5)
    is_provisional = _any_unfinished(ours) or _any_unfinished(theirs)
    is_established = caution(num_seeds) is None and is_clear and not is_provisional
    gap = float(mean(list(left_values.values())) - mean(list(right_values.values())))
    verdict = _verdict(is_established, num_seeds, is_provisional)
    return Comparison(
        left.label, right.label, num_seeds, is_provisional, gap, difference, improvement, is_established, verdict
    )


def _verdict(is_established: bool, num_seeds: int, is_provisional: bool) -> str:
    if is_provisional:
        return "not established: some runs are unfinished"
    seeds = "one seed" if num_seeds == 1 else f"{num_seeds} seeds"
    return f"established with {seeds}" if is_established else f"not established with {seeds}"


def _evaluated(group: Group) -> list[Curve]:
    """Return the evaluation curves of the runs in `drawn_runs`."""
    found = (finite_curve(run, "evaluation_return") for run in drawn_runs(group))
    return [curve for curve in found if len(curve[0])]


def _final_returns(group: Group) -> list[float]:
    return list(final_values(group).values())


def _areas(group: Group) -> list[float]:
    return [area_under_curve(*curve) for curve in _evaluated(group)]


SUMMARIES = (
    Summary("iqm", "IQM", _final_returns, interquartile_mean),
    Summary("area", "Area under curve", _areas),
)


def _summarised(summary: Summary, group: Group) -> Interval:
    values = summary.values_of(group)
    return interval(values, summary.statistic) if len(values) else UNKNOWN


def _final_row(group: Group, level: float) -> FinalRow:
    reached = finals(group)
    return FinalRow(
        label=group.label,
        num_seeds=len(reached),
        num_runs=len(group.runs),
        is_provisional=_any_unfinished(reached),
        mean=final_mean(group),
        summaries={each.name: _summarised(each, group) for each in SUMMARIES},
        reach=_reach(_evaluated(group), level),
        released=reference.released_for(group),
    )


def _reach(curves: Sequence[Curve], level: float) -> Reach:
    found = [episodes_to_reach(*curve, level) for curve in curves]
    ordered = sorted(math.inf if each is None else each for each in found)
    median = ordered[len(ordered) // 2] if ordered else math.inf  # the later one of an even number
    return Reach(None if math.isinf(median) else median, sum(map(math.isfinite, ordered)), len(ordered))


def _excludes(interval: Interval, value: float) -> bool:
    return interval.low > value or interval.high < value


def _any_unfinished(reached: dict[int, Final]) -> bool:
    return not all(each.is_finished for each in reached.values())
