"""Tabulate the settings of groups side by side, those that differ first."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from consmarl.reports.runs import Group, Run, flat_settings

NOT_WRITTEN = "default"  # shown for a value that an older version did not record
NOT_THERE = "–"


class Cell(NamedTuple):
    """A setting's value in one group."""

    value: str
    is_default: bool  # the user did not set it


class SettingRow(NamedTuple):
    """One setting in all groups."""

    name: str
    is_differing: bool
    cells: list[Cell]  # in the order of the groups

    @property
    def common(self) -> Cell:
        """The value that all groups have; it counts as a default only if it is one in all of them."""
        return Cell(self.cells[0].value, all(cell.is_default for cell in self.cells))


def setting_rows(groups: Sequence[Group]) -> list[SettingRow]:
    """Return all settings except the seed, those that differ between groups first."""
    names = dict.fromkeys(name for group in groups for run in group.runs for name in flat_settings(run.config))
    rows = [_row(name, groups) for name in names if name != "seed"]
    return sorted(rows, key=lambda row: not row.is_differing)


def _row(name: str, groups: Sequence[Group]) -> SettingRow:
    cells = [_cell(name, group) for group in groups]
    return SettingRow(name, len({cell.value for cell in cells}) > 1, cells)


def _cell(name: str, group: Group) -> Cell:
    """Return a setting's values in a group's runs; housekeeping settings may differ between seeds."""
    values = dict.fromkeys(_value(name, run) for run in group.runs)
    is_default = all(name in run.by_default for run in group.runs)
    return Cell(" or ".join(values), is_default and list(values) != [NOT_WRITTEN])


def _value(name: str, run: Run) -> str:
    settings = flat_settings(run.config)
    if name not in settings:
        return NOT_THERE
    return _shown(settings[name], is_resolved="by_default" in run.config)


def _shown(value: Any, *, is_resolved: bool) -> str:
    if value is None or value == []:
        return "none" if is_resolved or value == [] else NOT_WRITTEN
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
