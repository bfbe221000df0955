"""Everything that a report shows, computed once for the page and the CSV files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consmarl.reports.across import Across
from consmarl.reports.finals import by_world
from consmarl.reports.parts import Part, parts_of
from consmarl.reports.provenance import RunRow, run_rows
from consmarl.reports.runs import Group, Run, grouped
from consmarl.reports.settings import SettingRow, setting_rows
from consmarl.reports.themes import Style, styles_of
from consmarl.reports.times import TimeRow, time_rows


@dataclass(frozen=True)
class Contents:
    """The contents of a report."""

    runs: Sequence[Run]
    left_out: Sequence[str]  # one sentence per unreadable run
    study: Mapping[str, Any] | None
    worlds: dict[str, list[Group]]
    styles: list[Style]
    parts: list[Part]
    run_rows: list[RunRow]
    time_rows: list[TimeRow]
    setting_rows: list[SettingRow]

    @property
    def groups(self) -> list[Group]:
        """The groups of all environments."""
        return [group for there in self.worlds.values() for group in there]

    @property
    def style_of(self) -> dict[str, int]:
        """The index of each label's style."""
        return _places(self.styles)


def contents_of(
    runs: Sequence[Run],
    near: Path,
    *,
    study: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
    across: Across = Across.EPISODES,
) -> Contents:
    """Return the contents of a report; paths are relative to `near`, the directory of the page."""
    worlds = by_world(grouped(runs), (study or {}).get("groups") or ())
    groups = [group for there in worlds.values() for group in there]
    styles = styles_of(group.label for group in groups)
    return Contents(
        runs=runs,
        left_out=left_out,
        study=study,
        worlds=worlds,
        styles=styles,
        parts=parts_of(worlds, _places(styles), study, across),
        run_rows=run_rows(runs, groups, near),
        time_rows=time_rows(groups),
        setting_rows=setting_rows(groups),
    )


def _places(styles: Sequence[Style]) -> dict[str, int]:
    return {style.label: place for place, style in enumerate(styles)}
