"""The table that `consmarl report` prints: the final return of each group of runs."""

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from consmarl.reporting import Report
from consmarl.reports.tables import final_table
from consmarl.reports.words import with_bounds


def print_finals(report: Report) -> None:
    """Print each group's final return, as in the table on the page."""
    console = Console(highlight=False, markup=False)  # names of runs are plain text
    for world, groups in report.worlds.items():
        found = final_table(groups)
        table = Table(Column(Text(world)), "seeds", "final return [95 %]", "area under curve", box=None, pad_edge=False)
        for row in found.rows:
            reached, area = (with_bounds(each, found.decimals) for each in (row.mean, row.area))
            table.add_row(Text(row.label), str(row.num_seeds), Text(reached), Text(area))
        console.print(table)
