"""What `consmarl report` does: find the runs, show their policies, write the page and whatever else is wanted."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consmarl.errors import UsageError
from consmarl.report.runs import Found, Group, Run, find_runs, grouped

if TYPE_CHECKING:
    from consmarl.cli.commands import Report


def write(request: "Report") -> None:
    """Write what is asked for and say where it is."""
    study, found = _study_and_runs(request)
    _print_faults(found)
    groups = grouped(found.runs)
    if request.gifs:
        _show_policies(groups)
    if request.views:
        _show_exchanges(found.runs)
    _print_finals(groups)
    for path in _written(request, study, found, groups):
        print(f"wrote {path}", flush=True)  # each when it is there: what follows may be refused


def _written(request: "Report", study: dict[str, Any] | None, found: Found, groups: list[Group]) -> Iterator[Path]:
    """Write one file after the other."""
    yield from _page_and_sheets(request, study, found)
    if request.figures is not None:
        from consmarl.report.figures import write_figures

        yield from write_figures(groups, request.figures, study=study, across=request.x)
    if request.marl_eval is not None:
        from consmarl.report.marl_eval import write_marl_eval

        yield write_marl_eval(groups, request.marl_eval)


def _page_and_sheets(request: "Report", study: dict[str, Any] | None, found: Found) -> Iterator[Path]:
    """Write the page, and the same numbers as CSV if that is wanted."""
    from consmarl.report.contents import contents_of
    from consmarl.report.page import is_of_weights, write_page, write_weights_page
    from consmarl.report.sheets import all_sheets, weights_sheets, write_sheets

    if study is not None and is_of_weights(study):
        yield write_weights_page(study, request.out, title=request.title)
        sheets = weights_sheets()
    else:
        near = request.out.absolute().parent
        contents = contents_of(found.runs, near, study=study, left_out=found.left_out, across=request.x)
        yield write_page(contents, request.out, title=request.title)
        sheets = all_sheets(contents)
    if request.csv is not None:
        yield from write_sheets(sheets, request.csv)


def _print_faults(found: Found) -> None:
    """Say what cannot be used of the runs' files."""
    from consmarl.report.faults import fault_notes

    for note in fault_notes(found.runs, found.left_out):
        print(note, file=sys.stderr)


def _study_and_runs(request: "Report") -> tuple[dict[str, Any] | None, Found]:
    """Return the study's description, if one is named, and the runs that belong to it."""
    if request.study is None:
        if not request.runs:
            raise UsageError("name directories of runs, such as `consmarl report runs`, or a study with --study.")
        return None, find_runs(request.runs)
    from consmarl.experiments.sweeps.command import default_directory
    from consmarl.experiments.sweeps.studies import check_scale, find_study

    check_scale(request.scale)
    study = find_study(request.study)
    description = study.description(request.scale)
    if study.env is None:
        return description, Found([], [])
    places = request.runs or (default_directory(study.name, request.scale, ()),)
    for place in places:
        if not place.is_dir():
            raise UsageError(f"there is no {place}: run the study first with `{description['command']}`.")
    found = find_runs(places)
    ours = [run for run in found.runs if run.config.get("env") == study.env
            and run.facts.get("label") in description["groups"]]  # fmt: skip
    if not ours:
        raise UsageError(f"no run of the study is in {places[0]}: `{description['command']}` makes them.")
    return description, Found(ours, found.left_out)


def _print_finals(groups: list[Group]) -> None:
    """Print what each group reached, as the page's table has it."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from consmarl.report.finals import by_world
    from consmarl.report.tables import final_table
    from consmarl.report.words import with_bounds

    console = Console(highlight=False, markup=False)  # what runs are called is text
    for world, there in by_world(groups).items():
        found = final_table(there)
        table = Table(Column(Text(world)), "seeds", "final return [95 %]", "area under curve", box=None, pad_edge=False)
        for row in found.rows:
            reached, area = (with_bounds(each, found.decimals) for each in (row.mean, row.area))
            table.add_row(Text(row.label), str(row.num_seeds), Text(reached), Text(area))
        console.print(table)


def _show_policies(groups: list[Group]) -> None:
    """Write an episode of a policy of each group, where there is none yet and the world can be drawn.

    A report is worth having without: runs may lie where nobody may write, or be of another version.
    """
    from consmarl.environments.foreign import is_foreign
    from consmarl.experiments.watch import policy_gif
    from consmarl.files import POLICY_GIF
    from consmarl.report.runs import shown_run

    for group in groups:
        run = shown_run(group)
        if run is None or is_foreign(run.config["env"]) or (run.path / POLICY_GIF).exists():
            continue
        try:
            policy_gif(run.path)
        except UsageError as error:
            print(f"no picture of {group.name}: {error}", file=sys.stderr)


def _show_exchanges(runs: list[Run]) -> None:
    """Write the page of every run that has recorded episodes, where there is none or one older than a record."""
    from consmarl.experiments.exchanges import episode_path, recorded_numbers
    from consmarl.files import VIEW
    from consmarl.viewer.view import view

    for run in runs:
        recorded = [episode_path(run.path, number).stat().st_mtime for number in recorded_numbers(run.path)]
        page = run.path / VIEW
        if not recorded or (page.is_file() and page.stat().st_mtime >= max(recorded)):
            continue
        try:
            print(f"wrote {view(run.path)}", flush=True)
        except UsageError as error:
            print(f"no page of the exchanges in {run.path}: {error}", file=sys.stderr)
