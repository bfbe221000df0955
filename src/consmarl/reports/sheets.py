"""Convert tables and curves to CSV, for download from the page and as files, in full precision."""

import base64
import csv
import io
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consmarl.files import replacing
from consmarl.reports.across import Across
from consmarl.reports.charts import Figure
from consmarl.reports.contents import Contents
from consmarl.reports.metrics import metrics_of
from consmarl.reports.runs import Group, Run
from consmarl.reports.statistics import Interval
from consmarl.reports.tables import SUMMARIES
from consmarl.reports.weights import weights_figure

FORMULA_STARTS = ("=", "+", "-", "@", "\t")  # spreadsheets evaluate cells that start with these


class Sheet(NamedTuple):
    """A table of plain values."""

    name: str  # of its file
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def csv_text(sheet: Sheet) -> str:
    """Return a sheet as CSV: numbers in full precision, empty cells for unknown values."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows([_cell(value) for value in row] for row in sheet.rows)
    return written.getvalue()


def csv_link(sheet: Sheet) -> str:
    """Return a sheet as a data URI, for a download link that works offline."""
    return f"data:text/csv;charset=utf-8;base64,{base64.b64encode(csv_text(sheet).encode('utf-8')).decode()}"


def write_sheets(sheets: Iterable[Sheet], directory: Path) -> Iterator[Path]:
    """Write each non-empty sheet to a file in a directory; yield the paths."""
    for sheet in sheets:
        text = csv_text(sheet)
        if text.count("\n") > 1:
            path = Path(directory) / f"{sheet.name}.csv"
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8", newline="")
            yield path


def table_sheets(contents: Contents) -> dict[str, Sheet]:
    """Return the tables of a page, by section."""
    sheets = {
        "finals": _finals(contents),
        "comparisons": _comparisons(contents),
        "sharing": _sharing(contents),
        "achieved": _achieved(contents),
        "times": _times(contents),
        "settings": _settings(contents),
        "runs": _runs(contents),
    }
    return {section: sheet for section, sheet in sheets.items() if sheet.rows}


def all_sheets(contents: Contents) -> Iterator[Sheet]:
    """Yield the tables, the curves as drawn, every row of every run, and a description of the columns."""
    yield from table_sheets(contents).values()
    figures = [(part.world, figure) for part in contents.parts for figure in (part.curves, part.sharing) if figure]
    yield curve_sheet(figures)
    yield _rows(contents.groups)
    yield _metrics(contents)


def curve_sheet(figures: Sequence[tuple[str, Figure]]) -> Sheet:
    """Return a sheet with the curves of figures, each (environment, figure), as drawn."""
    views = dict.fromkeys(view for _, figure in figures for view in figure.views)
    columns = ["world", "metric", "group", "seeds", "episode", *_PLACES]
    columns += [name for view in views for name in _bounded(view)]
    return Sheet("curves", columns, [row for world, figure in figures for row in _points(world, figure, list(views))])


def weights_sheets() -> Iterator[Sheet]:
    """Yield the curves of the study of weights, which needs no runs."""
    yield curve_sheet([("", weights_figure("weights"))])


_PLACES = ("environment_steps", "seconds")
_OTHERS = (Across.STEPS, Across.TIME)


def _points(world: str, figure: Figure, views: Sequence[str]) -> Iterator[list[Any]]:
    for chart in figure.charts:
        for line in chart.lines:
            for point, episode in enumerate(line.episodes.tolist()):
                places = [_at(line.elsewhere.get(each), point) for each in _OTHERS]
                bands = [line.bands.get(name, (None, None, None)) for name in views]
                values = [_at(each, point) for band in bands for each in band]
                yield [world, chart.metric.name, figure.labels[line.group], line.num_seeds, episode, *places, *values]


def _at(values: NDArray[np.float64] | None, point: int) -> float | None:
    return None if values is None else float(values[point])


def _rows(groups: Sequence[Group]) -> Sheet:
    """Return every row of every run; unlike the sheet of curves, it is complete."""
    names = [each.name for each in metrics_of(run for group in groups for run in group.runs)]
    rows = (
        [group.world, group.label, run.seed, run.state, row["episode"], *places, *map(row.get, names)]
        for group in groups
        for run in group.runs
        for row, places in zip(run.rows, _places(run), strict=True)
    )
    return Sheet("rows", ("world", "group", "seed", "state", "episode", *_PLACES, *names), rows)


def _metrics(contents: Contents) -> Sheet:
    columns = ("world", "metric", "title", "family", "unit", "more_is_better", "most")
    rows = [
        (world, each.name, each.title, each.family, each.unit, each.more_is_better, each.most)
        for world, groups in contents.worlds.items()
        for each in metrics_of(run for group in groups for run in group.runs)
    ]
    return Sheet("metrics", columns, rows)


def _places(run: Run) -> list[list[float]]:
    """Return the environment steps and seconds up to each of a run's rows."""
    episodes = np.array([row["episode"] for row in run.rows], np.int64)
    return np.transpose([run.place(each, episodes) for each in _OTHERS]).tolist()


def _finals(contents: Contents) -> Sheet:
    summaries = itertools.chain.from_iterable(_bounded(each.name) for each in SUMMARIES)
    columns = ("world", "group", "seeds", "runs", *_bounded("final_return"), *summaries,
               "level", "episodes_to_reach_level", "seeds_that_reach_it", "has_unfinished_runs")  # fmt: skip
    rows = [
        (part.world, row.label, row.num_seeds, row.num_runs, *row.mean, *itertools.chain(*row.summaries.values()),
         part.finals.level, row.reach.median, row.reach.num_reaching, row.is_provisional)
        for part in contents.parts for row in part.finals.rows
    ]  # fmt: skip
    return Sheet("final-returns", columns, rows)


def _comparisons(contents: Contents) -> Sheet:
    columns = ("world", "higher", "lower", "seeds", "difference_of_means", *_bounded("paired_difference"),
               *_bounded("probability_of_improvement"), "is_established")  # fmt: skip
    rows = [
        (part.world, each.left, each.right, each.num_seeds, each.gap, *(each.difference or (None, None, None)),
         *each.improvement, each.is_established)
        for part in contents.parts for each in part.comparisons
    ]  # fmt: skip
    return Sheet("comparisons", columns, rows)


def _sharing(contents: Contents) -> Sheet:
    columns = ("world", "group", *_bounded("requests_spent_per_agent"), "share_of_budget",
               *_bounded("share_of_actions_advised"), *_bounded("requests_per_episode"),
               *_bounded("answers_per_episode"))  # fmt: skip
    rows = [
        (part.world, row.label, *row.budget_used, row.budget_share, *row.advised_share, *row.requests, *row.answers)
        for part in contents.parts for row in part.sharing_rows
    ]  # fmt: skip
    return Sheet("sharing", columns, rows)


def _achieved(contents: Contents) -> Sheet:
    columns = ("world", "counter", "group", *_bounded("mean"), "is_share_of_all", "has_unfinished_runs")
    rows = [
        (part.world, panel.name, bar.label, *bar.value, panel.is_share, bar.is_provisional)
        for part in contents.parts for panel in part.panels for bar in panel.bars
    ]  # fmt: skip
    return Sheet("achieved", columns, rows)


def _times(contents: Contents) -> Sheet:
    columns = ("world", "group", "machine", "runs", "seconds_median", "seconds_least", "seconds_most",
               "seconds_per_episode", "seconds_per_typical_episode", "environment_steps_per_second",
               "has_unfinished_runs")  # fmt: skip
    rows = [
        (row.world, row.label, row.machine, row.num_runs, *row.seconds, row.per_episode, row.typical,
         row.steps_per_second, row.is_provisional)
        for row in contents.time_rows
    ]  # fmt: skip
    return Sheet("times", columns, rows)


def _settings(contents: Contents) -> Sheet:
    rows = [
        (row.name, row.is_differing, group.world, group.label, cell.value, cell.is_default)
        for row in contents.setting_rows for group, cell in zip(contents.groups, row.cells, strict=True)
    ]  # fmt: skip
    return Sheet("settings", ("setting", "differs", "world", "group", "value", "is_default"), rows)


def _runs(contents: Contents) -> Sheet:
    columns = ("world", "group", "seed", "state", "episodes", "episodes_planned", "final_return", "seconds", "folder",
               "error", "notes")  # fmt: skip
    rows = [
        (row.world, row.label, row.seed, row.state, row.episode, row.episodes, row.final and row.final.value,
         row.seconds, row.path, row.error, " ".join(row.notes))
        for row in contents.run_rows
    ]  # fmt: skip
    return Sheet("runs", columns, rows)


def _bounded(name: str) -> tuple[str, ...]:
    return tuple(name if end == Interval._fields[0] else f"{name}_{end}" for end in Interval._fields)


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"  # a name in a third-party run must not become a formula
    return value
