"""Collect finished runs, print the tables and draw the curves; from the repository's folder:

    python -m results.learning.collect runs/learning    # adds runs to runs.json, prints the tables, draws the curves
    python -m results.learning.collect                  # prints and draws what runs.json holds (needs matplotlib)

`run.py` makes the runs. A run's variant is the first part of its path below the given folder,
`runs/learning/recommended/…`, or the first two parts in the ablation, `runs/learning/ablation-small/plain_head/…`.
"""

import json
import sys
from pathlib import Path

from results.collecting import ABLATION_HEAD, Run, ablation_row, collected, draw, groups, lines_of, numbers
from results.learning.run import ABLATION, SIZES, folder_of

from consmarl.reports.statistics import interval

HERE = Path(__file__).parent
OF_ABLATION = "ablation-"
WHOLE = next(iter(ABLATION))  # the variant with all ingredients


def variant_of(parts: tuple[str, ...]) -> str:
    """Return the variant of a run, given the parts of its path."""
    return "/".join(parts[:2]) if parts[0].startswith(OF_ABLATION) else parts[0]


def print_table(runs: list[Run]) -> None:
    """Print final returns: every seed, the mean, and its 95 % interval."""
    print("| environment | variant | episodes | n | final return, mean [95 %] | seeds |\n|---|---|---|---|---|---|")
    for (world, variant, episodes), group in groups(runs).items():
        estimate, low, high = interval([run["return"] for run in group])
        mean = f"{estimate:.1f} [{low:.1f}, {high:.1f}]" if len(group) > 2 else f"{estimate:.1f}"
        seeds = numbers(run["return"] for run in group)
        print(f"| `{world}` | {variant} | {episodes:,} | {len(group)} | {mean.replace('-', '−')} | {seeds} |")


def print_ablation(size: str, runs: list[Run]) -> None:
    """Print final return and area under the curve without each ingredient, and their differences seed by seed."""
    names = {f"{OF_ABLATION}{size}/{folder_of(name)}": name for name in ABLATION}
    by_variant = {names[variant]: group for (_, variant, _), group in groups(runs).items() if variant in names}
    if WHOLE not in by_variant:
        return
    reference = {run["seed"]: run for run in by_variant[WHOLE]}
    print(f"\nablation, {size}\n\n{ABLATION_HEAD}")
    for name in (each for each in ABLATION if each in by_variant):
        print(ablation_row(name, by_variant[name], reference))


def main() -> None:
    """Collect runs if the command line names a folder, then print and draw all of them."""
    kept = HERE / "runs.json"
    runs = collected(Path(sys.argv[1]), kept, variant_of) if len(sys.argv) > 1 else json.loads(kept.read_text())
    curves = [run for run in runs if not run["variant"].startswith(OF_ABLATION)]
    print_table(curves)
    for size in SIZES:
        print_ablation(size, runs)
    for world in sorted({run["world"] for run in curves}):
        of_world = groups(run for run in curves if run["world"] == world)
        labelled = {f"IQL, {variant}": group for (_, variant, _), group in of_world.items()}
        draw(HERE / f"{world}.png", world, labelled, lines_of(world))


if __name__ == "__main__":
    main()
