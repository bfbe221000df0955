"""Compute what a page shows for each environment."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from consmarl.metrics import SHARING, Metric
from consmarl.reports.achievements import BarPanel, SharingRow, bar_panels, shares, sharing_rows
from consmarl.reports.across import Across
from consmarl.reports.axes import Axis
from consmarl.reports.charts import Figure, figure
from consmarl.reports.curves import Points, lines_of, points_for_others
from consmarl.reports.metrics import metrics_of
from consmarl.reports.runs import Group
from consmarl.reports.tables import Comparison, FinalTable, comparisons, final_table


class Part(NamedTuple):
    """The contents of a page's sections for one environment."""

    world: str
    curves: Figure | None
    finals: FinalTable
    finals_axis: Axis
    comparisons: list[Comparison]
    comparisons_axis: Axis
    sharing: Figure | None
    sharing_rows: list[SharingRow]
    panels: list[BarPanel]


class Drawing(NamedTuple):
    """Settings that all figures of a page share."""

    style_of: Mapping[str, int]
    num_runs: int
    across: Across


def parts_of(
    worlds: Mapping[str, Sequence[Group]],
    style_of: Mapping[str, int],
    study: Mapping[str, Any] | None,
    across: Across = Across.EPISODES,
) -> list[Part]:
    """Return a part for each environment."""
    num_runs = sum(len(group.runs) for groups in worlds.values() for group in groups)
    drawing = Drawing(style_of, num_runs, across)
    return [_part(number, world, groups, drawing, study) for number, (world, groups) in enumerate(worlds.items())]


def _part(number: int, world: str, groups: Sequence[Group], drawing: Drawing, study: Mapping[str, Any] | None) -> Part:
    plot = (study or {}).get("plot")
    wanted = (study or {}).get("metric")
    every = metrics_of(run for group in groups for run in group.runs)
    sharing_groups = [group for group in groups if shares(group)]
    learned = [each for each in every if each.family != SHARING]
    shared = [each for each in every if each.family == SHARING]
    table, compared = final_table(groups), comparisons(groups)
    learned = opening(learned, wanted if plot == "curve" else None)
    curves = _figure(f"curves-{number}", world, groups, learned, drawing)
    sharing = _figure(f"sharing-{number}", world, sharing_groups, opening(shared, "budget_used"), drawing)
    return Part(
        world, curves, table, _finals_axis(table), compared, _comparisons_axis(compared), sharing,
        sharing_rows(groups), bar_panels(groups, as_shares=plot == "items"),
    )  # fmt: skip


def opening(metrics: Sequence[Metric], wanted: str | None) -> list[Metric]:
    """Return the metrics with the one named `wanted`, if any, first."""
    return sorted(metrics, key=lambda each: each.name != wanted)


def _figure(id: str, world: str, groups: Sequence[Group], metrics: Sequence[Metric], drawing: Drawing) -> Figure | None:
    others = points_for_others(drawing.num_runs, len(metrics))
    drawn = ((each, lines_of(groups, each.name, Points() if each is metrics[0] else others)) for each in metrics)
    styled = [(group.label, drawing.style_of[group.label]) for group in groups]
    return figure(id, styled, drawn, f"on {world}", drawing.across)


def _finals_axis(table: FinalTable) -> Axis:
    intervals = [end for row in table.rows for end in row.mean]
    released = [recorded.estimate for row in table.rows for recorded in row.released]
    return _around([*intervals, *released])


def _comparisons_axis(compared: Sequence[Comparison]) -> Axis:
    return _around([0.0, *(end for each in compared for end in each.difference or (each.gap,))])


def _around(values: Sequence[float]) -> Axis:
    """Return an axis with a small margin at both ends."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    room = 0.06 * (max(finite) - min(finite)) or 1.0
    return Axis(min(finite) - room, max(finite) + room, [])
