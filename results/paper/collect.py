"""Collect finished runs, write their tables into the pages of this folder, and draw the figures.

From the repository's folder:

    python -m results.paper.collect runs/paper    # first adds runs to runs.json
    python -m results.paper.collect               # uses the runs that runs.json holds (needs matplotlib)

`run.py` makes the runs, in folders such as `runs/paper/pgm-3ag/cons/seed-10`. A page shows a table between the lines
`<!-- table: NAME -->` and `<!-- end -->`; all the rest of a page is written by hand.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator
from results.collecting import collected, draw, fill_pages, lines_of
from results.paper.compute import draw_compute
from results.paper.miners import RELEASED_MINERS, num_miners
from results.paper.run import LABELS, variant_of
from results.paper.tables import ByVariant, by_world, curves_of, miners_of, spending_of, tables

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
    """Draw the curves of every environment, the requests spent, who mines, and returns over minutes."""
    draw_compute(HERE / "compute.png", worlds)
    colours = {label: f"C{number}" for number, label in enumerate(LABELS.values())}
    for world, by_variant in worlds.items():
        curves = {LABELS[variant]: group for variant, group in by_variant.items()}
        draw(HERE / curves_of(world), world, curves, levels_of(world), colours=colours)
        spent = {label: group for label, group in curves.items() if "budget_used" in group[0]}
        if spent:
            path, up = HERE / spending_of(world), "requests spent per agent"
            draw(path, world, spent, {}, what="budget_used", up=up, scale="symlog", colours=colours)
        if world in RELEASED_MINERS:
            draw_miners(world, by_variant, colours)


def draw_miners(world: str, by_variant: ByVariant, colours: Mapping[str, str]) -> None:
    """Draw final returns against how many agents mine; crosses are the released weights."""
    figure, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    for number, (variant, group) in enumerate(by_variant.items()):
        beside = 0.06 * (number - (len(by_variant) - 1) / 2)  # so that variants do not hide each other
        label = LABELS[variant]
        axis.plot(
            [num_miners(run) + beside for run in group],
            [run["return"] for run in group],
            "o", color=colours[label], label=label, alpha=0.8, markersize=5,
        )  # fmt: skip
    for method, (count, _) in RELEASED_MINERS[world].items():
        level = RELEASED[world][method][0].estimate
        axis.plot(count, level, "x", color="black", markersize=8)
        axis.annotate(f"released {method}", (count, level), xytext=(-8, 6), textcoords="offset points", ha="right")
    axis.set(xlabel="agents that mine", ylabel="team return, greedy", title=world)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.3)
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(HERE / miners_of(world), dpi=120)
    plt.close(figure)


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
