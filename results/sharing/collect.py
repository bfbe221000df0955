"""Collect finished runs, print the tables and draw the curves; from the repository's folder:

    python -m results.sharing.collect runs/sharing    # adds runs to runs.json, prints the tables, draws the curves
    python -m results.sharing.collect                 # prints and draws what runs.json holds (needs matplotlib)

`run.py` makes the runs, each below a folder named after its method, `runs/sharing/cons/…`, or after its variant in the
ablation, `runs/sharing/ablation/kappa_1/…`, or where an agent stays behind, `runs/sharing/rescue/kappa_1/…`.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from results.collecting import (
    ABLATION_HEAD,
    FEWEST_WITH_INTERVAL,
    Run,
    ablation_row,
    area,
    collected,
    difference,
    draw,
    groups,
    lines_of,
    numbers,
)
from results.learning.run import folder_of
from results.sharing.run import (
    ABLATION,
    ABLATION_ENV,
    EXPLORES_LONGER,
    IQL_THREE_UPDATES,
    METHODS,
    OF_ABLATION,
    OF_RESCUE,
    RESCUE,
    RESCUE_ENV,
    RESCUE_SEEDS,
    SETTINGS,
    THREE_UPDATES,
    WHOLE,
)

from consmarl.reports.statistics import episodes_to_reach, probability_of_improvement

HERE = Path(__file__).parent
LEVELS = {"pgm-3ag": 10.0, "pgm-6ag": 40.0, "ft": 3.0, "cleanup": 90.0}
LABELS = {
    "iql": "IQL",
    "cons": "CONS",
    "adhoc-td": "AdHocTD",
    "seql": "SEQL",
    THREE_UPDATES: "CONS, 3 updates",
    IQL_THREE_UPDATES: "IQL, 3 updates",
    EXPLORES_LONGER: "IQL, longer exploration",
}

Measure = Callable[[Run], float]


def final(run: Run) -> float:
    """Return the team return after training."""
    return float(run["return"])


def to_level(run: Run) -> float:
    """Return the episodes until a run reaches its environment's level, or the run's length if it never does."""
    episodes, values = np.array(run["evaluations"]).T
    return episodes_to_reach(episodes, values, LEVELS[run["world"]]) or float(run["episodes"])


def episodes_per_success(runs: Sequence[Run]) -> float:
    """Return the episodes that all runs spend until they reach the level, divided by the number that reach it.

    This is what reaching the level costs on average if runs that fail are begun anew: the average runtime of the COCO
    benchmarks (Hansen et al. 2016). At least one run has to reach it.
    """
    return sum(map(to_level, runs)) / sum(map(reaches, runs))


def reaches(run: Run) -> bool:
    """Return whether a run reaches its environment's level."""
    episodes, values = np.array(run["evaluations"]).T
    return episodes_to_reach(episodes, values, LEVELS[run["world"]]) is not None


MEASURES: dict[str, Measure] = {"final return": final, "area under the curve": area, "episodes to the level": to_level}


def print_returns(world: str, by_method: dict[str, list[Run]]) -> None:
    """Print the final returns of every seed, and each method's means of all measures."""
    print(f"\n{world}, {SETTINGS[world].episodes:,} episodes, level {LEVELS[world]:g}\n")
    columns = ("method", "n", "final return, seeds", "mean", "area, mean", "episodes to the level, mean",
               "runs that reach it", "episodes per success")  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for method in [name for name in METHODS if name in by_method]:
        group = by_method[method]
        means = [np.mean([measure(run) for run in group]) for measure in MEASURES.values()]
        cells = [f"{means[0]:.1f}", f"{means[1]:.1f}", f"{means[2]:,.0f}", f"{sum(map(reaches, group))}"]
        cells.append(f"{episodes_per_success(group):,.0f}" if any(map(reaches, group)) else "–")
        row = f"| {LABELS[method]} | {len(group)} | {numbers(map(final, group))} | {' | '.join(cells)} |"
        print(row.replace("-", "−"))


def print_comparisons(by_method: dict[str, list[Run]]) -> None:
    """Print how CONS differs from the other methods, compared seed by seed, and CONS with as many updates from SEQL."""
    print("\n| | against | measure | n | difference, mean [95 %] | seeds | probability of improvement |")
    print("|---|---|---|---|---|---|---|")
    pairs = [("cons", rival) for rival in METHODS if rival != "cons"] + [(THREE_UPDATES, "seql")]
    for one, rival in [pair for pair in pairs if all(name in by_method for name in pair)]:
        for name, measure in MEASURES.items():
            ours, theirs = ({run["seed"]: measure(run) for run in by_method[each]} for each in (one, rival))
            seeds = [seed for seed in ours if seed in theirs]
            if not seeds:
                continue
            gaps = [ours[seed] - theirs[seed] for seed in seeds]
            sign, decimals = (-1, 0) if measure is to_level else (1, 1)  # fewer episodes are better
            chance = probability_of_improvement(
                [sign * ours[seed] for seed in seeds], [sign * theirs[seed] for seed in seeds]
            )
            told = difference(gaps, decimals)
            if measure is to_level:
                share = sum(ours[seed] for seed in seeds) / sum(theirs[seed] for seed in seeds)
                told += f", {share:.2f} of theirs"
            probable = f"{chance.estimate:.2f} [{chance.low:.2f}, {chance.high:.2f}]"
            row = f"| {LABELS[one]} | {LABELS[rival]} | {name} | {len(seeds)} | {told} | {numbers(gaps, decimals)} "
            print(f"{row}| {probable if len(seeds) >= FEWEST_WITH_INTERVAL else ''} |".replace("-", "−"))


def print_ablation(by_variant: dict[str, list[Run]]) -> None:
    """Print how CONS differs with one ingredient changed, and how other methods do, compared seed by seed."""
    found = {name: by_variant.get(f"{OF_ABLATION}/{folder_of(name)}") for name in ABLATION}
    if not found[WHOLE]:
        return
    whole = {run["seed"]: run for run in found[WHOLE]}
    print(f"\nablation, a small {ABLATION_ENV}\n\n{ABLATION_HEAD}")
    for name, group in found.items():
        if group:
            print(ablation_row(name, group, whole))


def print_rescue(by_variant: dict[str, list[Run]]) -> None:
    """Print how variants of CONS do with the seeds in which an agent of IQL's team never learns to mine."""
    names = {"IQL": "iql", WHOLE: "cons", "AdHocTD": "adhoc-td"} | {
        name: f"{OF_RESCUE}/{folder_of(name)}" for name in RESCUE
    }
    seeds = ", ".join(map(str, RESCUE_SEEDS))
    print(f"\nrescue, {RESCUE_ENV}\n\n| variant | final return, seeds {seeds} | mean | reach the level | area, mean |")
    print("|---|---|---|---|---|")
    for name, variant in names.items():
        group = [run for run in by_variant.get(variant, []) if run["seed"] in RESCUE_SEEDS]
        if group:
            cells = [f"{np.mean(list(map(measure, group))):.1f}" for measure in (final, area)]
            reached = f"{sum(map(reaches, group))} of {len(group)}"
            print(f"| {name} | {numbers(map(final, group))} | {cells[0]} | {reached} | {cells[1]} |".replace("-", "−"))


def is_ablation(run: Run) -> bool:
    """Return whether a run belongs to the ablation, which has its own seeds."""
    return bool(run["variant"].startswith(f"{OF_ABLATION}/"))


def variant_of(parts: tuple[str, ...]) -> str:
    """Return the variant of a run, given the parts of its path."""
    return "/".join(parts[:2]) if parts[0] in (OF_ABLATION, OF_RESCUE) else parts[0]


def main() -> None:
    """Collect runs if the command line names a folder, then print and draw all of them."""
    kept = HERE / "runs.json"
    by_folder = collected(Path(sys.argv[1]), kept, variant_of) if len(sys.argv) > 1 else None
    runs: list[Run] = json.loads(kept.read_text()) if by_folder is None else by_folder
    for world in sorted({run["world"] for run in runs}):
        chosen = [r for r in runs if r["world"] == world and (r["seed"] in SETTINGS[world].seeds or is_ablation(r))]
        by_method = {method: group for (_, method, _), group in groups(chosen).items()}
        print_returns(world, by_method)
        if "cons" in by_method:
            print_comparisons(by_method)
        if world == ABLATION_ENV:
            print_ablation(by_method)
        if world == RESCUE_ENV:
            print_rescue(by_method)
        curves = {LABELS[method]: by_method[method] for method in METHODS if method in by_method}
        if len(curves) > 1:
            draw(HERE / f"{world}.png", world, curves, lines_of(world))


if __name__ == "__main__":
    main()
