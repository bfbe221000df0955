"""The counters of each group's final policies, and how much of its sharing budget each group used."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from consmarl.metrics import SHARING, Metric
from consmarl.reports.finals import drawn_runs, final_mean, final_values, finals, finite_curve, scalar_curve
from consmarl.reports.metrics import counters_of
from consmarl.reports.runs import Group
from consmarl.reports.statistics import Interval, interval, mean, on_common_episodes
from consmarl.reports.words import decimals_for

UNKNOWN = Interval(math.nan, math.nan, math.nan)


class Bar(NamedTuple):
    """The value of one counter for one group."""

    label: str
    value: Interval
    is_provisional: bool
    seeds: tuple[float, ...]  # one value per seed


class BarPanel(NamedTuple):
    """The values of one counter for all groups in an environment."""

    name: str
    title: str
    top: float  # upper end of the scale
    is_share: bool
    bars: list[Bar]

    @property
    def decimals(self) -> int:
        """Number of decimals of its values."""
        return decimals_for([self.top])


def bar_panels(groups: Sequence[Group], *, as_shares: bool = False) -> list[BarPanel]:
    """Return a panel per counter of the groups' environment, as shares if requested and its maximum is known."""
    counters = counters_of(run for group in groups for run in group.runs)
    panels = [_panel(groups, each, each.most if as_shares else None) for each in counters]
    return [panel for panel in panels if panel.bars]


def _panel(groups: Sequence[Group], counter: Metric, whole: float | None) -> BarPanel:
    bars = [_bar(group, counter.name, whole or 1) for group in groups if final_values(group, counter.name)]
    ends = [end for bar in bars for end in (bar.value.estimate, bar.value.high) if math.isfinite(end)]
    top = 1.0 if whole else max(ends, default=0.0) or 1.0
    return BarPanel(counter.name, counter.title, top, whole is not None, bars)


def _bar(group: Group, name: str, whole: float) -> Bar:
    reached = finals(group, name).values()
    value = Interval(*(each / whole for each in final_mean(group, name)))
    is_provisional = not all(each.is_finished for each in reached)
    return Bar(group.label, value, is_provisional, tuple(each.value / whole for each in reached))


class SharingRow(NamedTuple):
    """How one group used its sharing budget."""

    label: str
    budget_used: Interval  # requests per agent
    budget_share: float  # of the whole budget; NaN if that was not recorded
    advised_share: Interval
    requests: Interval  # per episode, averaged over the whole run
    answers: Interval


def sharing_rows(groups: Sequence[Group]) -> list[SharingRow]:
    """Return a row for each group that shares."""
    return [_sharing_row(group) for group in groups if shares(group)]


def shares(group: Group) -> bool:
    """Return whether the runs of a group report any sharing metrics."""
    names = ((run, name) for run in drawn_runs(group) for name in set[str]().union(*run.rows))
    return any(run.schema[name].family == SHARING for run, name in names)


def _sharing_row(group: Group) -> SharingRow:
    episodes, used = on_common_episodes([scalar_curve(run, "budget_used") for run in drawn_runs(group)])
    spent = interval(used[:, -1]) if len(episodes) else UNKNOWN
    left = [row["requests_left"] for run in drawn_runs(group) for row in run.rows[-1:] if "requests_left" in row]
    had = spent.estimate + float(mean([float(mean(each)) for each in left])) if left else math.nan
    return SharingRow(
        label=group.label,
        budget_used=spent,
        budget_share=spent.estimate / had if had else math.nan,
        advised_share=_over_the_run(group, "advised_share"),
        requests=_over_the_run(group, "requests"),
        answers=_over_the_run(group, "answers"),
    )


def _over_the_run(group: Group, name: str) -> Interval:
    curves = [finite_curve(run, name)[1] for run in drawn_runs(group)]
    means = [float(mean(values)) for values in curves if len(values)]
    return interval(means) if means else UNKNOWN
