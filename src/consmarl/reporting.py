"""Compare runs from Python: `consmarl.report`. The command `consmarl report` calls it and prints the result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consmarl.errors import UsageError
from consmarl.records import typed
from consmarl.reports.across import Across
from consmarl.reports.contents import Contents, contents_of
from consmarl.reports.curves import common_points
from consmarl.reports.faults import fault_notes
from consmarl.reports.finals import by_world, final_values
from consmarl.reports.page import is_of_weights, write_page, write_weights_page
from consmarl.reports.runs import Found, Group, Run, find_runs, grouped, shown_run
from consmarl.reports.statistics import Band, band
from consmarl.reports.tables import Comparison, FinalRow, comparisons, final_table

Tell = Callable[[str], None]
Wanted = Path | str | None


@dataclass(frozen=True)
class Curve:
    """A metric over the course of training, for all seeds of a group."""

    episodes: NDArray[np.int64]  # [point], shared by all seeds
    values: NDArray[np.float64]  # [seed, point]
    mean: Band  # over seeds, with 95 % bootstrap intervals


@dataclass(frozen=True)
class Report:
    """Statistics of a set of runs."""

    runs: Sequence[Run]
    notes: Sequence[str] = ()  # one sentence for each file or picture that could not be read or drawn
    study: Mapping[str, Any] | None = None
    files: Sequence[Path] = field(default=())  # files that were written

    @cached_property
    def worlds(self) -> dict[str, list[Group]]:
        """Groups of runs that differ only in their seeds, by environment."""
        return by_world(grouped(self.runs), (self.study or {}).get("groups") or ())

    def finals(self, world: str | None = None) -> list[FinalRow]:
        """Return a row per group, best first: mean final return with interval, area under the curve, seeds."""
        return final_table(self._groups(world)).rows

    def comparisons(self, world: str | None = None) -> list[Comparison]:
        """Return the pairwise comparisons of groups: paired difference and probability of improvement."""
        return comparisons(self._groups(world))

    def returns(self, world: str | None = None, metric: str = "return") -> dict[str, dict[Any, float]]:
        """Return each seed's final value, by group: {"CONS": {0: 12.5, 1: 11.0}}."""
        return {group.label: final_values(group, metric) for group in self._groups(world)}

    def curve(self, label: str, metric: str = "evaluation_return", world: str | None = None) -> Curve:
        """Return a metric over the course of training, for all seeds of the group with this label."""
        groups = {group.label: group for group in self._groups(world)}
        if label not in groups:
            raise UsageError(f"there is no group {label!r}: choose from {', '.join(map(repr, groups))}.")
        _, episodes, values = common_points(groups[label], metric)
        return Curve(episodes, values, band(values))

    def _groups(self, world: str | None) -> list[Group]:
        if world is None and len(self.worlds) == 1:
            return next(iter(self.worlds.values()))
        if world is None or world not in self.worlds:
            raise UsageError(f"say which environment: choose from {', '.join(map(repr, self.worlds))}.")
        return self.worlds[world]


def report(
    *runs: Path | str,
    out: Wanted = None,
    study: str | None = None,
    scale: float = 1.0,
    title: str | None = None,
    figures: Wanted = None,
    csv: Wanted = None,
    x: Across | str = Across.EPISODES,
    marl_eval: Wanted = None,
    gifs: bool = False,
    views: bool = False,
    tell: Tell | None = None,
) -> Report:
    """Read runs and return their statistics; write the requested files.

    `runs` are directories of runs, or directories that contain runs at any depth; they are not needed for a `study` (a
    figure of the paper, run at this `scale`). `out` is the page to write, `figures` and `csv` are directories,
    `marl_eval` is a file; `x` is the x-axis of the curves. `gifs` and `views` add pictures of policies and pages of
    recorded exchanges to the runs' directories. `tell` is called with a message for each file written.
    """
    across = typed("x", Across, x)
    description, found = _study_and_runs(tuple(map(Path, runs)), study, scale)
    notes = list(fault_notes(found.runs, found.left_out))
    groups = grouped(found.runs)
    if gifs:
        notes += _show_policies(groups)
    if views:
        notes += _show_exchanges(found.runs, tell)
    files = []
    for path in _written(description, found, groups, across, title, out, figures, csv, marl_eval):
        files.append(path)
        if tell is not None:
            tell(f"wrote {path}")  # immediately, since later files may fail
    return Report(found.runs, notes, description, files)


def _written(
    study: dict[str, Any] | None,
    found: Found,
    groups: list[Group],
    across: Across,
    title: str | None,
    out: Wanted,
    figures: Wanted,
    csv: Wanted,
    marl_eval: Wanted,
) -> Iterator[Path]:
    """Write the requested files and yield the path of each once it is written."""
    if out is not None or csv is not None:
        yield from _page_and_sheets(study, found, across, title, out, csv)
    if figures is not None:
        from consmarl.reports.figures import write_figures

        yield from write_figures(groups, Path(figures), study=study, across=across)
    if marl_eval is not None:
        from consmarl.reports.marl_eval import write_marl_eval

        yield write_marl_eval(groups, Path(marl_eval))


def _page_and_sheets(
    study: dict[str, Any] | None, found: Found, across: Across, title: str | None, out: Wanted, csv: Wanted
) -> Iterator[Path]:
    """Write the page and its numbers as CSV, if requested, and yield their paths."""
    from consmarl.reports.sheets import all_sheets, weights_sheets, write_sheets

    if study is not None and is_of_weights(study):
        if out is not None:
            yield write_weights_page(study, Path(out), title=title)
        sheets = weights_sheets()
    else:
        contents = _contents(found, study, across, Path(out or "."))
        if out is not None:
            yield write_page(contents, Path(out), title=title)
        sheets = all_sheets(contents)
    if csv is not None:
        yield from write_sheets(sheets, Path(csv))


def _contents(found: Found, study: dict[str, Any] | None, across: Across, out: Path) -> Contents:
    near = out.absolute().parent
    return contents_of(found.runs, near, study=study, left_out=found.left_out, across=across)


def _study_and_runs(runs: tuple[Path, ...], name: str | None, scale: float) -> tuple[dict[str, Any] | None, Found]:
    """Return the description of the study `name` and its runs; without a name, None and all runs found."""
    if name is None:
        if not runs:
            raise UsageError("name directories of runs, such as `consmarl report runs`, or a study with --study.")
        return None, find_runs(runs)
    from consmarl.experiments.sweeps.command import default_directory
    from consmarl.experiments.sweeps.studies import check_scale, find_study

    check_scale(scale)
    study = find_study(name)
    description = study.description(scale)
    if study.env is None:
        return description, Found([], [])
    places = runs or (default_directory(study.name, scale, ()),)
    for place in places:
        if not place.is_dir():
            raise UsageError(f"there is no {place}: run the study first with `{description['command']}`.")
    found = find_runs(places)
    ours = [run for run in found.runs if run.config.get("env") == study.env
            and run.facts.get("label") in description["groups"]]  # fmt: skip
    if not ours:
        raise UsageError(f"no run of the study is in {places[0]}: make them with `{description['command']}`.")
    return description, Found(ours, found.left_out)


def _show_policies(groups: list[Group]) -> Iterator[str]:
    """Draw an episode of one policy per group, unless it exists already or the environment cannot be drawn.

    Yield a note for each failure instead of raising it: runs may be read-only or from another version, and a report is
    useful without pictures.
    """
    from consmarl.environments.registry import can_be_drawn
    from consmarl.experiments.compiled import tell_if_not_kept
    from consmarl.experiments.watch import policy_gif
    from consmarl.files import POLICY_GIF

    tell_if_not_kept()
    for group in groups:
        run = shown_run(group)
        if run is None or not can_be_drawn(run.config["env"]) or (run.path / POLICY_GIF).exists():
            continue
        try:
            policy_gif(run.path)
        except UsageError as error:
            yield f"no picture of {group.name}: {error}"


def _show_exchanges(runs: list[Run], tell: Tell | None) -> Iterator[str]:
    """Write the replay page of every run with recorded episodes, unless it is up to date; yield a note per failure."""
    from consmarl.experiments.exchanges import episode_path, recorded_numbers
    from consmarl.files import VIEW
    from consmarl.viewer.view import view

    for run in runs:
        recorded = [episode_path(run.path, number).stat().st_mtime for number in recorded_numbers(run.path)]
        page = run.path / VIEW
        if not recorded or (page.is_file() and page.stat().st_mtime >= max(recorded)):
            continue
        try:
            written = view(run.path)
        except UsageError as error:
            yield f"no page for the exchanges in {run.path}: {error}"
        else:
            if tell is not None:
                tell(f"wrote {written}")
