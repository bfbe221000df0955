"""Convert charts to data for the page's script, rounded to the precision shown and without duplicates."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.reports.across import TITLES, Across
from consmarl.reports.charts import Chart, Figure, Frame
from consmarl.reports.curves import Line
from consmarl.reports.statistics import Band

DECIMALS_OF = {Across.EPISODES: 0, Across.STEPS: 0, Across.TIME: 1}  # tenths of a second


def payload(figure: Figure) -> dict[str, Any]:
    """Return all charts of a figure; series refer to shared lists of x positions by index."""
    places: dict[tuple[float | None, ...], int] = {}
    charts = [
        {
            "name": chart.metric.name,
            "title": chart.metric.title,
            "family": chart.metric.family,
            "decimals": chart.decimals,
            "series": [_series(figure, chart, line, places) for line in chart.lines],
            "views": {
                name: {"frame": _frame(view.frame), "withSeeds": _frame(view.with_seeds), "says": view.says}
                for name, view in chart.views.items()
            },
        }
        for chart in figure.charts
    ]
    return {
        "x": {each.value: axis for each, axis in figure.x.items()},
        "titles": {each.value: TITLES[each] for each in figure.x},
        "across": figure.across.value,
        "where": figure.where,
        "labels": figure.labels,
        "styles": figure.styles,
        "places": list(places),
        "charts": charts,
    }


def _series(figure: Figure, chart: Chart, line: Line, places: dict[tuple[float | None, ...], int]) -> dict[str, Any]:
    along = {each: tuple(rounded(line.over(each), DECIMALS_OF[each])) for each in figure.x}
    series: dict[str, Any] = {
        "group": line.group,
        "x": {each.value: places.setdefault(found, len(places)) for each, found in along.items()},
        "bands": {name: _rounded_band(band, chart.decimals) for name, band in line.bands.items()},
    }
    if line.seeds is not None:
        values = [rounded(each, chart.decimals) for each in line.seeds.values]
        series["seeds"] = {"names": line.seeds.seeds, "every": line.seeds.every, "values": values}
    return series


def _frame(frame: Frame) -> dict[str, Any]:
    return {"y": frame.y, "ends": [round(end, 4) for end in frame.ends]}


def _rounded_band(band: Band, decimals: int) -> list[list[float | None] | None]:
    has_bounds = bool(np.isfinite(band.low).any())
    return [rounded(band.estimate, decimals), *(rounded(each, decimals) if has_bounds else None for each in band[1:])]


def rounded(values: NDArray[np.float64], decimals: int) -> list[float | None]:
    """Return rounded numbers; non-finite ones become None, since JSON cannot represent them."""
    shown = (round(value, decimals) + 0.0 if math.isfinite(value) else None for value in values.tolist())
    return [int(value) if value is not None and not decimals else value for value in shown]
