"""The final values of each run, and which runs represent their group."""

import dataclasses
import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from consmarl.reports.colours import COLOURS
from consmarl.reports.runs import Curve, Group, Run
from consmarl.reports.statistics import Interval, interval, mean

MARK = "†"  # marks values that include an unfinished run


class Final(NamedTuple):
    """A final value of a run: measured after training or, if it is unfinished, in its last evaluation."""

    value: float
    is_finished: bool


def final(run: Run, name: str = "return") -> Final | None:
    """Return a metric's value after training, or in the last evaluation of an unfinished run.

    Return None for a failed run, or if there is no value.
    """
    if run.state == "failed":
        return None
    if run.result is not None:
        return Final(float(run.result[name]), True) if run.result.get(name) is not None else None
    evaluations = (row[f"evaluation_{name}"] for row in reversed(run.rows) if f"evaluation_{name}" in row)
    last = next(evaluations, None)
    return None if last is None else Final(float(last), False)


def finals(group: Group, name: str = "return") -> dict[int, Final]:
    """Return each seed's final value, omitting seeds without a finite one."""
    found = {run.seed: final(run, name) for run in group.runs}
    return {seed: each for seed, each in found.items() if each is not None and math.isfinite(each.value)}


def final_values(group: Group, name: str = "return") -> dict[Hashable, float]:
    """Return the values of `finals` as plain numbers."""
    return {seed: each.value for seed, each in finals(group, name).items()}


def final_mean(group: Group, name: str = "return") -> Interval:
    """Return the mean over the group's seeds with its interval; NaN if no run has a value."""
    values = list(final_values(group, name).values())
    return interval(values, mean) if values else Interval(math.nan, math.nan, math.nan)


def best_first(groups: Sequence[Group]) -> list[Group]:
    """Return groups sorted by final return, those without one last."""
    estimates = {id(group): final_mean(group).estimate for group in groups}

    def place(group: Group) -> float:
        estimate = estimates[id(group)]
        return -estimate if math.isfinite(estimate) else math.inf

    return sorted(groups, key=place)


def drawn_runs(group: Group) -> list[Run]:
    """Return the runs for a group's curve: the finished ones or, if there are none, all that have not failed.

    Otherwise, a run that has just started would cut the whole group's curve to its own length.
    """
    finished = [run for run in group.runs if run.state == "finished"]
    return finished or [run for run in group.runs if run.state != "failed"]


def by_world(groups: Sequence[Group], order: Sequence[str] = ()) -> dict[str, list[Group]]:
    """Return the groups of each environment, in the given order of labels; by default, known methods come first.

    Groups with the same label in one environment are numbered.
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
    """Return `run.curve` of a metric that is never a list; ten times as fast, since pages need a million values."""
    rows = [row for row in run.rows if type(row.get(name)) in (float, int)]
    return np.array([row["episode"] for row in rows], np.int64), np.array([row[name] for row in rows], np.float64)


def finite_curve(run: Run, name: str) -> Curve:
    """Return the curve of a metric without its non-finite values, for averages over a run."""
    episodes, values = scalar_curve(run, name)
    is_finite = np.isfinite(values)
    return episodes[is_finite], values[is_finite]
