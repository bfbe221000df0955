"""How long runs took, by group and machine.

Times are those in the rows of metrics. They include acting, learning, evaluations during training, and compilation,
which is part of the first row; they exclude breaks between the sessions of a run, and its final evaluation.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from consmarl.reports.provenance import machines_of, seconds_of
from consmarl.reports.runs import Group, Run
from consmarl.reports.words import NOT_KNOWN

SEVERAL_MACHINES = "several machines"


class Range(NamedTuple):
    """The median, minimum and maximum of some numbers."""

    median: float
    low: float
    high: float


class TimeRow(NamedTuple):
    """How long the runs of one group took on one kind of machine."""

    world: str
    label: str
    machine: str
    num_runs: int
    is_provisional: bool  # some of the runs are unfinished
    seconds: Range  # of a run
    per_episode: float  # seconds, overall
    typical: float | None  # seconds per episode in the median row, which rarely includes compilation or an evaluation
    steps_per_second: float  # NaN if not recorded


def time_rows(groups: Sequence[Group]) -> list[TimeRow]:
    """Return a row for each group and machine; runs without recorded times are left out."""
    rows = []
    for group in groups:
        timed: dict[str, list[Run]] = {}
        for run in group.runs:
            if seconds_of(run) and run.episode:
                timed.setdefault(_machine(run), []).append(run)
        rows += [_row(group, machine, runs) for machine, runs in timed.items()]
    return rows


def _row(group: Group, machine: str, runs: list[Run]) -> TimeRow:
    seconds = [seconds_of(run) or 0.0 for run in runs]
    typical = [each for run in runs if (each := typical_episode(run)) is not None]
    steps = [float(run.rows[-1].get("env_steps", math.nan)) for run in runs]
    return TimeRow(
        world=group.world,
        label=group.label,
        machine=machine,
        num_runs=len(runs),
        is_provisional=any(run.state != "finished" for run in runs),
        seconds=Range(statistics.median(seconds), min(seconds), max(seconds)),
        per_episode=sum(seconds) / sum(run.episode for run in runs),
        typical=statistics.median(typical) if typical else None,
        steps_per_second=sum(steps) / sum(seconds),
    )


def typical_episode(run: Run) -> float | None:
    """Return the seconds per episode in the run's median row; None if not recorded."""
    pairs = zip(run.rows, run.rows[1:], strict=False)
    found = [row.get("seconds", math.nan) / (row["episode"] - before["episode"]) for before, row in pairs]
    known = [each for each in found if math.isfinite(each)]
    return statistics.median(known) if known else None


def _machine(run: Run) -> str:
    found = machines_of(run)
    return SEVERAL_MACHINES if len(found) > 1 else found[0] if found else NOT_KNOWN
