"""What each run has to show in the end, and which runs speak for their group."""

import dataclasses
import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from consmarl.reports.colours import COLOURS
from consmarl.reports.runs import Curve, Group, Run
from consmarl.reports.statistics import Interval, interval, mean

MARK = "†"  # beside what holds an unfinished run


class Final(NamedTuple):
    """One number of a run: from after training, or from its last evaluation so far."""

    value: float
    is_finished: bool


def final(run: Run, name: str = "return") -> Final | None:
    """Return what a run reached: after training, else in its last evaluation; failed runs have nothing to show."""
    if run.state == "failed":
        return None
    if run.result is not None:
        return Final(float(run.result[name]), True) if run.result.get(name) is not None else None
    evaluations = (row[f"evaluation_{name}"] for row in reversed(run.rows) if f"evaluation_{name}" in row)
    last = next(evaluations, None)
    return None if last is None else Final(float(last), False)


def finals(group: Group, name: str = "return") -> dict[int, Final]:
    """Return what each seed of a group reached."""
    found = {run.seed: final(run, name) for run in group.runs}
    return {seed: each for seed, each in found.items() if each is not None and math.isfinite(each.value)}


def final_values(group: Group, name: str = "return") -> dict[Hashable, float]:
    """Return what each seed of a group reached, as bare numbers."""
    return {seed: each.value for seed, each in finals(group, name).items()}


def final_mean(group: Group, name: str = "return") -> Interval:
    """Return the mean over the group's seeds with its interval; NaN where no run has anything to show."""
    values = list(final_values(group, name).values())
    return interval(values, mean) if values else Interval(math.nan, math.nan, math.nan)


def best_first(groups: Sequence[Group]) -> list[Group]:
    """Return groups by what they reached, and those with nothing to show last."""
    estimates = {id(group): final_mean(group).estimate for group in groups}

    def place(group: Group) -> float:
        estimate = estimates[id(group)]
        return -estimate if math.isfinite(estimate) else math.inf

    return sorted(groups, key=place)


def drawn_runs(group: Group) -> list[Run]:
    """Return the runs that make a group's curve: the finished ones; where none is, all that have not failed.

    One run that has just begun would otherwise cut the curve of all others to its own length.
    """
    finished = [run for run in group.runs if run.state == "finished"]
    return finished or [run for run in group.runs if run.state != "failed"]


def by_world(groups: Sequence[Group], order: Sequence[str] = ()) -> dict[str, list[Group]]:
    """Return the groups of each world, in this order of labels, or else known methods first.

    Groups that bear the same name in one world are numbered.
    """
    known = list(order) or list(COLOURS)

    def place(group: Group) -> int:
        return known.index(group.label) if group.label in known else len(known)

    worlds: dict[str, list[Group]] = {group.world: [] for group in groups}
    for group in sorted(groups, key=place):
        there = worlds[group.world]
        num_same = sum(each.label == group.label or each.label.startswith(f"{group.label} (") for each in there)
        label = f"{group.label} ({num_same + 1})" if num_same else group.label
        there.append(dataclasses.replace(group, label=label))
    return worlds


def scalar_curve(run: Run, name: str) -> Curve:
    """Return what `run.curve` does of a metric without lists, ten times as fast: pages ask for a million values."""
    rows = [row for row in run.rows if type(row.get(name)) in (float, int)]
    return np.array([row["episode"] for row in rows], np.int64), np.array([row[name] for row in rows], np.float64)


def finite_curve(run: Run, name: str) -> Curve:
    """Return a metric where it is finite, for averages over a run."""
    episodes, values = scalar_curve(run, name)
    is_finite = np.isfinite(values)
    return episodes[is_finite], values[is_finite]
