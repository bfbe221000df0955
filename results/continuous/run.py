"""IQL and CONS where no observation ever occurs twice: make the runs, collect them, print the table, draw the curves.

    python -m results.continuous.run                   # makes what is missing, in runs/continuous
    python -m results.continuous.run --envs discrete   # a part of it
    python -m results.continuous.run --kept            # only prints and draws what runs.json holds (needs matplotlib)

`--out` sets another folder than runs/continuous, `--workers` the number of parallel runs.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from results.collecting import Run, area, collected, draw, numbers
from results.running import sweep

from consmarl.reports.statistics import interval

HERE = Path(__file__).parent
WORLD = "jaxmarl:MPE_simple_spread_v3"
SETS: dict[str, dict[str, Any]] = {  # observations are continuous in both
    "discrete": {},
    "continuous": {"action_type": "Continuous"},
}
METHODS = ("iql", "cons")
SEEDS = (100, 101, 102, 103, 104)  # none of them was used to choose a setting
OPTIONS = {"episodes": 6_000, "replay_episodes": 3_000, "evaluation_episodes": 200, "final_episodes": 400}


def make_runs(envs: list[str], seeds: list[int], out: Path, workers: int | None) -> None:
    """Execute the runs that are missing."""
    for env in envs:
        for method in METHODS:
            where = out / f"{env} {method}"
            sweep([method], [WORLD], seeds, options=OPTIONS, set=SETS[env], out=where, workers=workers)


def print_table(env: str, by_method: dict[str, list[Run]]) -> None:
    """Print the returns of every seed, their means, and the differences between CONS and IQL with the same seeds."""
    print(f"\n{WORLD}, {env} actions\n")
    print("| | n | final team return, seeds | mean [95 %] | area under the curve, mean [95 %] |")
    print("|---|---|---|---|---|")
    for method, group in by_method.items():
        finals = [run["return"] for run in group]
        row = f"| {method.upper()} | {len(group)} | {numbers(finals)} | {_shown(finals)} "
        print(row.replace("-", "−") + f"| {_shown([area(run) for run in group])} |".replace("-", "−"))
    ours, theirs = ({run["seed"]: run for run in by_method.get(method, [])} for method in ("cons", "iql"))
    both = [seed for seed in ours if seed in theirs]
    gaps = [ours[seed]["return"] - theirs[seed]["return"] for seed in both]
    areas = [area(ours[seed]) - area(theirs[seed]) for seed in both]
    if both:
        print(f"| CONS − IQL | {len(both)} | {numbers(gaps)} | {_shown(gaps)} | {_shown(areas)} |".replace("-", "−"))


def _shown(values: list[float]) -> str:
    estimate, low, high = interval(values)
    return f"{estimate:.1f} [{low:.1f}, {high:.1f}]"


def main() -> None:
    """Execute the requested runs, then print and draw all runs in runs.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=Path("runs/continuous"))
    parser.add_argument("--workers", type=int)
    parser.add_argument("--kept", action="store_true")
    asked = parser.parse_args()
    kept = HERE / "runs.json"
    if not asked.kept:
        make_runs(asked.envs, asked.seeds, asked.out, asked.workers)
        collected(asked.out, kept, lambda parts: parts[0])
    runs: list[Run] = json.loads(kept.read_text())
    for env in SETS:
        by_method = {method: [run for run in runs if run["variant"] == f"{env} {method}"] for method in METHODS}
        found = {method: group for method, group in by_method.items() if group}
        if found:
            print_table(env, found)
            labelled = {method.upper(): group for method, group in found.items()}
            draw(HERE / f"{env}.png", f"simple spread, {env} actions", labelled, {})


if __name__ == "__main__":
    main()
