"""Collect finished runs, print the tables and draw the figures; from the repository's folder:

    python -m results.paper.collect runs/paper    # adds runs to runs.json, prints the tables, draws the figures
    python -m results.paper.collect               # prints and draws what runs.json holds (needs matplotlib)

`run.py` makes the runs, each below a folder named after its variant: `runs/paper/cons/…`.
"""

import json
import sys
from pathlib import Path

import numpy as np
from results.collecting import Run, area, collected, draw, groups, lines_of, numbers
from results.paper.run import EPISODES, PARTS, VARIANTS, seeds_of

from consmarl.reports.statistics import interval

HERE = Path(__file__).parent
LABELS = {
    "iql": "IQL",
    "iql-squared": "IQL, ε²",
    "adhoc-td": "AdHocTD, paper",
    "adhoc-td-release": "AdHocTD, release",
    "cons": "CONS, paper",
    "cons-release": "CONS, release",
    "i2q": "I2Q",
    "seql": "SEQL",
    "ga-comm": "GA-Comm",
}
TEACHERS = {"paper": ("cons", "adhoc-td"), "release": ("cons-release", "adhoc-td-release")}

ByVariant = dict[str, list[Run]]


def missing(runs: list[Run]) -> list[str]:
    """Return what has not been run yet, one line for each environment and variant."""
    there = {(run["world"], run["variant"], run["seed"]) for run in runs}
    lines = []
    for part in (each for parts in PARTS.values() for each in parts):
        for variant in part.variants:
            seeds = [seed for seed in seeds_of(part) if (part.env, variant, seed) not in there]
            if seeds:
                lines.append(f"{part.env}, {LABELS[variant]}: seeds {', '.join(map(str, seeds))}")
    return lines


def print_returns(world: str, by_variant: ByVariant) -> None:
    """Print the final returns of every seed, and the means of final return, area and requests spent."""
    print(f"\n## {world}, {EPISODES[world]:,} episodes\n")
    print("| variant | n | final return, seeds | mean [95 %] | area, mean | requests spent per agent, mean |")
    print("|---|---|---|---|---|---|")
    for variant, group in by_variant.items():
        estimate, low, high = interval([run["return"] for run in group])
        mean = f"{estimate:.1f} [{low:.1f}, {high:.1f}]" if len(group) > 2 else f"{estimate:.1f}"
        spent = f"{np.mean([requests(run) for run in group]):,.0f}" if "budget_used" in group[0] else ""
        row = f"| {LABELS[variant]} | {len(group)} | {numbers(run['return'] for run in group)} | {mean} "
        print(f"{row}| {np.mean([area(run) for run in group]):.1f} | {spent} |".replace("-", "−"))


def requests(run: Run) -> float:
    """Return the requests that each agent had spent at the end, on average."""
    return float(run["budget_used"][-1][1])


def print_comparisons(by_variant: ByVariant) -> None:
    """Print how both presets of CONS differ from the other variants, seed by seed, and the share of requests."""
    print("\n| | against | n | final return, difference [95 %] | area, difference [95 %] |\n|---|---|---|---|---|")
    for ours in ("cons", "cons-release"):
        for rival in (each for each in by_variant if each != ours and ours in by_variant):
            cells = []
            for measure in (lambda run: run["return"], area):
                left, right = ({run["seed"]: measure(run) for run in by_variant[each]} for each in (ours, rival))
                gaps = [left[seed] - right[seed] for seed in left if seed in right]
                estimate, low, high = interval(gaps) if gaps else (np.nan,) * 3
                cells.append(f"{estimate:+.1f} [{low:+.1f}, {high:+.1f}]" if len(gaps) > 2 else numbers(gaps))
            print(f"| {LABELS[ours]} | {LABELS[rival]} | {len(gaps)} | {' | '.join(cells)} |".replace("-", "−"))
    for preset, (ours, theirs) in TEACHERS.items():
        if ours in by_variant and theirs in by_variant:
            spent = [np.mean([requests(run) for run in by_variant[each]]) for each in (ours, theirs)]
            print(f"\nRequests of CONS as a share of AdHocTD's, {preset}: {spent[0] / spent[1]:.1%}")


def main() -> None:
    """Collect runs if the command line names a folder, then print and draw all of them."""
    kept = HERE / "runs.json"
    if len(sys.argv) > 1:
        runs = collected(Path(sys.argv[1]), kept, lambda parts: parts[0])
    else:
        runs = json.loads(kept.read_text()) if kept.exists() else []
    for world in [each for each in EPISODES if any(run["world"] == each for run in runs)]:
        found = {variant: group for (env, variant, _), group in groups(runs).items() if env == world}
        by_variant = {variant: found[variant] for variant in VARIANTS if variant in found}
        print_returns(world, by_variant)
        print_comparisons(by_variant)
        curves = {LABELS[variant]: group for variant, group in by_variant.items()}
        draw(HERE / f"{world}.png", world, curves, lines_of(world))
        spent = {label: group for label, group in curves.items() if "budget_used" in group[0]}
        if spent:
            path, up = HERE / f"{world}-requests.png", "requests spent per agent"
            draw(path, world, spent, {}, what="budget_used", up=up)
    print("\nNot run yet:\n" + "\n".join(f"- {line}" for line in missing(runs)))


if __name__ == "__main__":
    main()
