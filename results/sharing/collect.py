"""Collect finished runs, write their tables into the pages of this folder, and draw the curves.

From the repository's folder:

    python -m results.sharing.collect runs/sharing    # first adds runs to runs.json
    python -m results.sharing.collect                 # uses the runs that runs.json holds (needs matplotlib)

`run.py` makes the runs, each below a folder named after its method, `runs/sharing/cons/…`, or after its variant in the
ablation, `runs/sharing/ablation/kappa_1/…`, or where an agent stays behind, `runs/sharing/rescue/kappa_1/…`.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
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
    fill_pages,
    groups,
    lines_of,
    numbers,
    table,
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
ByMethod = Mapping[str, list[Run]]

# What is compared and drawn together: CONS with the others, and again if it learns as much as SEQL with three agents.
ONE_UPDATE = ("cons", "iql", "adhoc-td", "seql", EXPLORES_LONGER)
THREE = (THREE_UPDATES, IQL_THREE_UPDATES, "seql")


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


def returns(world: str, by_method: ByMethod) -> str:
    """Return the final returns of every seed, and each method's means of all measures."""
    columns = ("method", "n", f"final return, seeds from {SETTINGS[world].seeds[0]} on", "mean", "area, mean",
               f"episodes to a return of {LEVELS[world]:g}, mean", "reached by", "per success")  # fmt: skip
    rows = []
    for method in [name for name in METHODS if name in by_method]:
        group = by_method[method]
        means = [np.mean([measure(run) for run in group]) for measure in MEASURES.values()]
        cells = [f"{means[0]:.1f}", f"{means[1]:.1f}", f"{means[2]:,.0f}", f"{sum(map(reaches, group))}"]
        cells.append(f"{episodes_per_success(group):,.0f}" if any(map(reaches, group)) else "–")
        rows.append([LABELS[method], f"{len(group)}", numbers(map(final, group)), *cells])
    return table(columns, rows)


def comparisons(by_method: ByMethod, methods: Sequence[str]) -> str:
    """Return how the first of these methods differs from the others, compared seed by seed."""
    columns = ("", "against", "measure", "n", "difference, mean [95 %]", "seeds", "probability of improvement")
    rows = []
    one, *rivals = methods
    for rival in [name for name in rivals if name in by_method and one in by_method]:
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
            sure = probable if len(seeds) >= FEWEST_WITH_INTERVAL else ""
            rows.append([LABELS[one], LABELS[rival], name, f"{len(seeds)}", told, numbers(gaps, decimals), sure])
    return table(columns, rows)


def ablation(by_variant: ByMethod) -> str:
    """Return how CONS differs with one ingredient changed, and how other methods do, compared seed by seed."""
    found = {name: by_variant.get(f"{OF_ABLATION}/{folder_of(name)}") for name in ABLATION}
    whole = {run["seed"]: run for run in found[WHOLE] or ()}
    rows = [ablation_row(name, group, whole) for name, group in found.items() if group]
    return "\n".join([ABLATION_HEAD, *rows]) + "\n"


def rescue(by_variant: ByMethod) -> str:
    """Return how variants of CONS do with the seeds in which an agent of IQL's team never learns to mine."""
    names = {"IQL": "iql", WHOLE: "cons", "AdHocTD": "adhoc-td"} | {
        name: f"{OF_RESCUE}/{folder_of(name)}" for name in RESCUE
    }
    rows = []
    for name, variant in names.items():
        group = [run for run in by_variant.get(variant, []) if run["seed"] in RESCUE_SEEDS]
        if group:
            mean_return, mean_area = (f"{np.mean(list(map(measure, group))):.1f}" for measure in (final, area))
            reached = f"{sum(map(reaches, group))} of {len(group)}"
            rows.append([name, numbers(map(final, group)), mean_return, reached, mean_area])
    seeds = ", ".join(map(str, RESCUE_SEEDS))
    return table(("variant", f"final return, seeds {seeds}", "mean", "reach the level", "area, mean"), rows)


def tables(runs: Sequence[Run]) -> dict[str, str]:
    """Return all tables by the names that pages use."""
    found = {}
    for world in sorted({run["world"] for run in runs}):
        by_method = of_world(runs, world)
        found[f"returns {world}"] = returns(world, by_method)
        found[f"comparisons {world}"] = comparisons(by_method, ONE_UPDATE)
        found[f"comparisons with three updates {world}"] = comparisons(by_method, THREE)
        if world == ABLATION_ENV:
            found["ablation"] = ablation(by_method)
        if world == RESCUE_ENV:
            found["rescue"] = rescue(by_method)
    return found


def of_world(runs: Sequence[Run], world: str) -> ByMethod:
    """Return an environment's runs by method or variant: those with its seeds, and those of the ablation."""
    chosen = [r for r in runs if r["world"] == world and (r["seed"] in SETTINGS[world].seeds or is_ablation(r))]
    return {method: group for (_, method, _), group in groups(chosen).items()}


def is_ablation(run: Run) -> bool:
    """Return whether a run belongs to the ablation, which has its own seeds."""
    return bool(run["variant"].startswith(f"{OF_ABLATION}/"))


def variant_of(parts: tuple[str, ...]) -> str:
    """Return the variant of a run, given the parts of its path."""
    return "/".join(parts[:2]) if parts[0] in (OF_ABLATION, OF_RESCUE) else parts[0]


def main() -> None:
    """Collect runs if the command line names a folder, then fill the pages and draw the figures."""
    kept = HERE / "runs.json"
    by_folder = collected(Path(sys.argv[1]), kept, variant_of) if len(sys.argv) > 1 else None
    runs: list[Run] = json.loads(kept.read_text()) if by_folder is None else by_folder
    fill_pages(HERE, tables(runs))
    for world in sorted({run["world"] for run in runs}):
        by_method = of_world(runs, world)
        for name, methods in {world: ONE_UPDATE, f"{world}-three-updates": THREE}.items():
            curves = {LABELS[method]: by_method[method] for method in methods if method in by_method}
            if len(curves) > 1:
                draw(HERE / f"{name}.png", name, curves, lines_of(world))


if __name__ == "__main__":
    main()
