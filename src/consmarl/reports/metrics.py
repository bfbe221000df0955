"""The metrics that runs contain, as declared by the runs."""

from collections.abc import Iterable

from consmarl.metrics import BOOKKEEPING, EVALUATED, Metric, Schema, joined
from consmarl.reports.runs import Run

NOT_CURVES = BOOKKEEPING | {EVALUATED + name for name in BOOKKEEPING}


def schema_of(runs: Iterable[Run]) -> Schema:
    """Return the combined declarations of these runs."""
    return joined(run.schema for run in runs)


def metrics_of(runs: Iterable[Run]) -> list[Metric]:
    """Return the metrics of these runs that can be drawn as curves, by family, declared ones first."""
    runs = list(runs)
    is_number: dict[str, bool] = {}  # by the first value, since checking all values of a hundred runs takes seconds
    for run in runs:
        for row in run.rows:
            for name in row.keys() - is_number.keys():
                is_number[name] = isinstance(row[name], int | float)
    return schema_of(runs).in_order({name for name, is_curve in is_number.items() if is_curve} - NOT_CURVES)


def counters_of(runs: Iterable[Run]) -> list[Metric]:
    """Return the counters of these runs' greedy episodes, in display order, without totals whose parts are shown."""
    runs = list(runs)
    written = {name for run in runs for name in run.result or ()}
    rows = (row for run in runs if not run.result for row in run.rows)
    written |= {name.removeprefix(EVALUATED) for row in rows for name in row if name.startswith(EVALUATED)}
    return schema_of(runs).counters(written)
