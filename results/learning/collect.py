"""Collect finished runs, print the tables and draw the curves.

    python results/learning/collect.py runs/learning    # adds runs to runs.json, prints the tables, draws the curves
    python results/learning/collect.py                  # prints and draws what runs.json holds (needs matplotlib)

`run.py` makes the runs. A run's variant is the first part of its path below the folder that is named,
`runs/learning/recommended/…`, or the second below `ablation`.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from run import ABLATION, folder_of

from consmarl.reports.statistics import band, interval

HERE = Path(__file__).parent
WHOLE = next(iter(ABLATION))  # the variant that lacks nothing
COUNTERS = ("gold_mined", "treasures_taken", "apples_eaten")
# Mean team returns: examples/scripted_*.py (400 episodes, seed 1), and the weights that the paper's authors released.
SCRIPTS = {"pgm-3ag": 23.7, "pgm-6ag": 176.2, "ft": 8.7, "cleanup": 140.0}
RELEASED = {"pgm-3ag": 14.1, "pgm-6ag": 19.7, "ft": 2.9, "cleanup": 74.6}

Run = dict[str, Any]


def read(run: Path, root: Path) -> Run:
    """Return what is kept of a finished run."""
    first, second, *_ = run.relative_to(root).parts
    config = json.loads((run / "config.json").read_text())
    result = json.loads((run / "result.json").read_text())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {
        "world": config["env"],
        "variant": f"{first}/{second}" if first == "ablation" else first,
        "seed": config["seed"],
        "episodes": config["episodes"],
        "return": round(result["return"], 3),
        "return_error": round(result["return_error"], 3),
        **{name: round(result[name], 3) for name in COUNTERS if name in result},
        "evaluations": [
            (row["episode"], round(row["evaluation_return"], 2)) for row in rows if "evaluation_return" in row
        ],
    }


def identity(run: Run) -> tuple[str, str, int, int]:
    """Return what tells a run from the others."""
    return run["world"], run["variant"], run["episodes"], run["seed"]


def collected(root: Path, before: list[Run]) -> list[Run]:
    """Read all finished runs below a folder; they take the place of like ones that were collected before."""
    runs = {identity(run): run for run in before}
    runs |= {identity(run): run for run in (read(path.parent, root) for path in root.rglob("result.json"))}
    return [runs[key] for key in sorted(runs)]


def groups(runs: list[Run]) -> dict[tuple[str, str, int], list[Run]]:
    """Return the runs that differ in nothing but the seed."""
    found = defaultdict(list)
    for run in runs:
        found[run["world"], run["variant"], run["episodes"]].append(run)
    return found


def print_table(runs: list[Run]) -> None:
    """Print final returns: every seed, the mean, and its 95 % interval."""
    print("| world | variant | episodes | n | final return, mean [95 %] | seeds |\n|---|---|---|---|---|---|")
    for (world, variant, episodes), group in groups(runs).items():
        estimate, low, high = interval([run["return"] for run in group])
        seeds = ", ".join(f"{run['return']:.1f}" for run in group).replace("-", "−")
        mean = f"{estimate:.1f} [{low:.1f}, {high:.1f}]" if len(group) > 1 else f"{estimate:.1f}"
        print(f"| `{world}` | {variant} | {episodes:,} | {len(group)} | {mean.replace('-', '−')} | {seeds} |")


def print_ablation(runs: list[Run]) -> None:
    """Print what becomes of final return and area under the curve without each ingredient, seed by seed."""
    by_variant = {variant: group for (_, variant, _), group in groups(runs).items()}
    whole = by_variant.pop("ablation/" + folder_of(WHOLE), None)
    if whole is None:
        return
    names = {"ablation/" + folder_of(name): name for name in ABLATION}
    reference = {run["seed"]: run for run in whole}
    print("\n| variant | n | final return | difference [95 %] | area | difference [95 %] |\n|---|---|---|---|---|---|")
    _print_row(WHOLE, whole, reference)
    for variant in sorted(by_variant, key=list(names).index):
        _print_row(names[variant], by_variant[variant], reference)


def _print_row(name: str, group: list[Run], reference: dict[int, Run]) -> None:
    cells = []
    for measure in (lambda run: run["return"], area):
        values = [measure(run) for run in group]
        gaps = [measure(run) - measure(reference[run["seed"]]) for run in group if run["seed"] in reference]
        estimate, low, high = interval(gaps)
        gap = "" if not any(gaps) else f"{estimate:+.1f} [{low:+.1f}, {high:+.1f}]"
        cells += [f"{np.mean(values):.1f}", gap]
    print(f"| {name} | {len(group)} | {' | '.join(cells)} |".replace("-", "−"))


def area(run: Run) -> float:
    """Return the mean of a run's evaluations: the area under its curve, in units of return."""
    return float(np.mean([value for _, value in run["evaluations"]]))


def draw(runs: list[Run], world: str) -> None:
    """Draw the curves of a world: every seed thin, the mean and its interval on top."""
    figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for number, ((_, variant, _), group) in enumerate(groups([run for run in runs if run["world"] == world]).items()):
        colour = f"C{number}"
        episodes = np.array([episode for episode, _ in group[0]["evaluations"]])
        values = np.array([[value for _, value in run["evaluations"]] for run in group])
        axis.plot(episodes, values.T, color=colour, alpha=0.25, linewidth=0.7)
        estimate, low, high = band(values)
        axis.fill_between(episodes, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.plot(episodes, estimate, color=colour, linewidth=2, label=f"IQL, {variant} (n = {len(group)})")
    axis.axhline(SCRIPTS[world], color="black", linestyle="--", linewidth=1, label="script with the same eyes")
    axis.axhline(RELEASED[world], color="grey", linestyle=":", linewidth=1.2, label="released CONS weights")
    axis.set(xlabel="episodes", ylabel="team return, greedy", title=world)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, loc="lower right")
    figure.savefig(HERE / f"{world}.png", dpi=120)
    plt.close(figure)


def main() -> None:
    """Collect where a folder is named; print and draw."""
    kept = HERE / "runs.json"
    runs: list[Run] = json.loads(kept.read_text())
    if len(sys.argv) > 1:
        runs = collected(Path(sys.argv[1]), runs)
        kept.write_text(json.dumps(runs, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    curves = [run for run in runs if not run["variant"].startswith("ablation/")]
    print_table(curves)
    print_ablation([run for run in runs if run["variant"].startswith("ablation/")])
    for world in sorted({run["world"] for run in curves}):
        draw(curves, world)


if __name__ == "__main__":
    main()
