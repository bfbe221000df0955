"""Notes on data in the runs' files that could not be used, so that a report omits nothing silently."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from consmarl.files import METRICS, RESULT
from consmarl.metrics_rows import told
from consmarl.reports.finals import final
from consmarl.reports.runs import Run
from consmarl.reports.words import listed, plural

MOST_NOTES = 6  # at the top of a page; the table of runs shows all of them
MOST_METRICS = 3  # metrics named in one sentence


class Note(NamedTuple):
    """A sentence about data in a run's file that could not be used."""

    file: str
    text: str  # follows the file name in a sentence


def fault_notes(runs: Sequence[Run], left_out: Sequence[str]) -> list[str]:
    """Return a sentence for each run that was left out and each note on data skipped in the others."""
    skipped = (f"{run.path / note.file}: {note.text}" for run in runs for note in notes_on(run))
    return [*(f"A run was left out: {each}" for each in left_out), *skipped]


def shortened(notes: Sequence[str]) -> list[str]:
    """Return the notes for the top of a page; if there are too many, a sentence that counts the rest comes last."""
    if len(notes) <= MOST_NOTES:
        return list(notes)
    return [*notes[: MOST_NOTES - 1], f"{len(notes) - MOST_NOTES + 1} more notes like these are under Every run."]


def notes_on(run: Run) -> list[Note]:
    """Return notes on skipped lines and non-finite values in a run's files."""
    notes = []
    if run.faults:
        rest = f"the other {plural(len(run.rows), 'row')} {'was' if len(run.rows) == 1 else 'were'} read"
        notes.append(Note(METRICS, f"skipped {told(run.faults)}; {rest}."))
    if run.not_finite:
        where = listed(_places(run))
        notes.append(Note(METRICS, f"NaN or infinite: {where}; curves have gaps there, and averages skip them."))
    reached = final(run)
    if reached is not None and not math.isfinite(reached.value):
        file = RESULT if reached.is_finished else METRICS
        notes.append(Note(file, "the final return is NaN or infinite; the run is left out of mean final returns."))
    return notes


def _places(run: Run) -> list[str]:
    """Return the names of metrics with non-finite values, each with their number: "loss 3 times"."""
    named = [f"{name} {plural(count, 'time')}" for name, count in run.not_finite.items()]
    num_more = len(named) - MOST_METRICS
    return named if num_more <= 0 else [*named[:MOST_METRICS], plural(num_more, "other metric")]
