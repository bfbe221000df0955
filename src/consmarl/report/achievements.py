"""What groups achieved in their world, and what they spent on sharing to get there."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from consmarl.report.finals import drawn_runs, final_mean, final_values, finals, finite_curve, scalar_curve
from consmarl.report.metrics import counters_of, metric
from consmarl.report.runs import Group
from consmarl.report.statistics import Interval, interval, mean, on_common_episodes
from consmarl.report.words import decimals_for

UNKNOWN = Interval(math.nan, math.nan, math.nan)
# How many there are in an episode, so that what was found can be told as a share of it.
BOXES = {"yellow_opened": 3, "red_opened": 6, "coins_taken": 3, "treasures_taken": 1}
ALL_THERE_ARE = {"ft": BOXES, "ft-20": BOXES}


class Bar(NamedTuple):
    """What one group achieved of one thing."""

    label: str
    value: Interval
    is_provisional: bool


class BarPanel(NamedTuple):
    """What all groups of a world achieved of one thing."""

    name: str
    title: str
    top: float  # where the scale ends
    is_share: bool
    bars: list[Bar]

    @property
    def decimals(self) -> int:
        """How many decimals its numbers have."""
        return decimals_for([self.top])


def bar_panels(groups: Sequence[Group], *, as_shares: bool = False) -> list[BarPanel]:
    """Return a panel for each counter of the groups' world, as shares if that is wanted and the whole is known."""
    runs = [run for group in groups for run in group.runs]
    written = {name for run in runs if run.result for name in run.result}
    written |= {name.removeprefix("evaluation_") for run in runs if not run.result for row in run.rows for name in row}
    wholes = ALL_THERE_ARE.get(groups[0].world, {}) if as_shares else {}
    panels = [_panel(groups, name, wholes.get(name)) for name in counters_of(written)]
    return [panel for panel in panels if panel.bars]


def _panel(groups: Sequence[Group], name: str, whole: int | None) -> BarPanel:
    bars = [
        Bar(
            group.label,
            Interval(*(each / (whole or 1) for each in final_mean(group, name))),
            not all(each.is_finished for each in finals(group, name).values()),
        )
        for group in groups
        if final_values(group, name)
    ]
    ends = [end for bar in bars for end in (bar.value.estimate, bar.value.high) if math.isfinite(end)]
    top = 1.0 if whole else max(ends, default=0.0) or 1.0
    return BarPanel(name, metric(name).title, top, whole is not None, bars)


class SharingRow(NamedTuple):
    """What one group did with its budget."""

    label: str
    budget_used: Interval  # requests an agent
    budget_share: float  # of all that it had; NaN where that is not written down
    advised_share: Interval
    requests: Interval  # an episode, over the whole run
    answers: Interval


def sharing_rows(groups: Sequence[Group]) -> list[SharingRow]:
    """Return what the groups that share did with their budget."""
    return [_sharing_row(group) for group in groups if shares(group)]


def shares(group: Group) -> bool:
    """Return whether anybody in a group can ask anybody."""
    return any("requests" in row for run in drawn_runs(group) for row in run.rows)


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
