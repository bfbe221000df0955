"""What could not be used of the runs' files, in sentences: a number that changes must not change in silence."""

import math
from collections.abc import Sequence

from consmarl.files import METRICS
from consmarl.metrics_rows import told
from consmarl.report.finals import final
from consmarl.report.runs import Run
from consmarl.report.words import listed, plural

MOST_NOTES = 6  # at the top of a page; the table of runs has all of them
MOST_METRICS = 3  # that are named in a sentence


def fault_notes(runs: Sequence[Run], left_out: Sequence[str]) -> list[str]:
    """Return a sentence for each run that was left out, and those on what was skipped of the others."""
    return [*(f"A run was left out: {each}" for each in left_out), *(each for run in runs for each in notes_on(run))]


def shortened(notes: Sequence[str]) -> list[str]:
    """Return as many notes as fit the top of a page, and how many more there are."""
    if len(notes) <= MOST_NOTES:
        return list(notes)
    return [*notes[: MOST_NOTES - 1], f"{len(notes) - MOST_NOTES + 1} more notes of this kind are under Every run."]


def notes_on(run: Run) -> list[str]:
    """Return what was skipped of a run's files, and what in them is not a number."""
    notes = []
    if run.faults:
        rest = f"its other {plural(len(run.rows), 'row')} {'was' if len(run.rows) == 1 else 'were'} read"
        notes.append(f"{run.path / METRICS}: {told(run.faults)}; skipped, and {rest}.")
    if run.not_finite:
        where = listed(_places(run))
        notes.append(f"{run.path / METRICS}: not finite are {where}; curves have gaps there, and means leave them out.")
    reached = final(run)
    if reached is not None and not math.isfinite(reached.value):
        notes.append(f"{run.path}: the final return is not finite; the run is in no mean of final returns.")
    return notes


def _places(run: Run) -> list[str]:
    """Return which metrics are not finite, and in how many rows."""
    named = [f"{name} in {plural(count, 'row')}" for name, count in run.not_finite.items()]
    num_more = len(named) - MOST_METRICS
    return named if num_more <= 0 else [*named[:MOST_METRICS], plural(num_more, "other metric")]
