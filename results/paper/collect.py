"""Collect finished runs, write their tables into the pages of this folder, and draw the figures.

From the repository's folder:

    python -m results.paper.collect runs/paper    # first adds runs to runs.json
    python -m results.paper.collect               # uses the runs that runs.json holds (needs matplotlib)

`run.py` makes the runs, each below a folder named after its variant: `runs/paper/cons/…` or
`runs/paper/ablation/cons/…`. A page shows a table between the lines `<!-- table: NAME -->` and `<!-- end -->`; all the
rest of a page is written by hand.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from results.collecting import collected, draw, fill_pages, lines_of
from results.paper.run import LABELS, variant_of
from results.paper.tables import ByVariant, by_world, curves_of, spending_of, tables

from consmarl.reports.reference import LANDMARKS, RELEASED

HERE = Path(__file__).parent


def levels_of(world: str) -> dict[str, float]:
    """Return the reference returns of an environment, by label."""
    limits = {mark.name: mark.recorded.estimate for mark in LANDMARKS[world] if mark.name != "random play"}
    others = {
        f"released {method} weights": RELEASED[world][method][0].estimate
        for method in ("AdHocTD", "IQL")
        if method in RELEASED[world]
    }
    return lines_of(world) | limits | others


def draw_figures(worlds: Mapping[str, ByVariant]) -> None:
    """Draw the curves of every environment, and the requests spent."""
    colours = {label: f"C{number}" for number, label in enumerate(LABELS.values())}
    for world, by_variant in worlds.items():
        curves = {LABELS[variant]: group for variant, group in by_variant.items()}
        draw(HERE / curves_of(world), world, curves, levels_of(world), colours=colours)
        spent = {label: group for label, group in curves.items() if "budget_used" in group[0]}
        if spent:
            path, up = HERE / spending_of(world), "requests spent per agent"
            draw(path, world, spent, {}, what="budget_used", up=up, scale="symlog", colours=colours)


def main() -> None:
    """Collect runs if the command line names a folder, then fill the pages and draw the figures."""
    kept = HERE / "runs.json"
    if len(sys.argv) > 1:
        runs = collected(Path(sys.argv[1]), kept, variant_of, by_agent=True)
    else:
        runs = json.loads(kept.read_text()) if kept.exists() else []
    by_name = tables(runs)
    fill_pages(HERE, by_name)
    draw_figures(by_world(runs))
    print(f"Not run yet:\n{by_name['missing']}", end="")


if __name__ == "__main__":
    main()
