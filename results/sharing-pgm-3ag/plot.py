"""Draw the curves and print the table from the committed rows: `python results/sharing-pgm-3ag/plot.py`.

Needs matplotlib. Bands are 95 % intervals of the mean over three seeds by Student's t, which are wide for so few seeds.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
IQL = HERE.parent / "iql-pgm-3ag"
T_95 = {3: 4.303}  # two-sided 95 % quantile of Student's t, by the number of runs
BUDGET, ALL_GOLD, WINDOW = 50_000, 3, 5

# colours that are distinguishable for colour-blind readers (Okabe and Ito)
FAMILIES = {
    "ε-greedy, as in the paper": [
        ("IQL", IQL, "epsilon-greedy", "#000000"),
        ("IQL, ε²", HERE, "iql-epsilon-squared", "#999999"),
        ("AdHocTD, paper", HERE, "adhoc-td-paper", "#0072B2"),
        ("CONS, paper", HERE, "cons-paper", "#D55E00"),
        ("CONS, release", HERE, "cons-release", "#CC79A7"),
    ],
    "εz-greedy": [
        ("IQL", IQL, "epsilon-z-greedy", "#000000"),
        ("AdHocTD, paper", HERE, "adhoc-td-z", "#0072B2"),
        ("CONS, κ = 0.3, asking when exploring", HERE, "cons-z-exploring", "#D55E00"),
        ("CONS, κ = 0.3, asking when starting to explore", HERE, "cons-z-starting", "#E69F00"),
        ("CONS, κ = 0.3, always asking", HERE, "cons-z-always", "#009E73"),
    ],
}


def runs_of(folder: Path, kind: str) -> list[list[dict]]:
    """Return the rows of every seed."""
    return [
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(folder.glob(f"{kind}-[0-9].jsonl"))
    ]


def series(runs: list[list[dict]], value) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes, and `value(row)` of all rows that have it: [run, row]."""
    tables = [[(row["episode"], value(row)) for row in rows if value(row) is not None] for rows in runs]
    return np.array(tables)[0, :, 0], np.array(tables)[:, :, 1]


def smoothed(values: np.ndarray) -> np.ndarray:
    """Return the moving average over each value and those before it, WINDOW values in total."""
    return np.stack([values[:, max(0, i - WINDOW + 1) : i + 1].mean(axis=1) for i in range(values.shape[1])], axis=1)


def interval(values: np.ndarray) -> np.ndarray | None:
    """Return half the width of the 95 % interval of the mean over runs; None unless there are three."""
    count = len(values)
    return T_95[count] * values.std(axis=0, ddof=1) / np.sqrt(count) if count in T_95 else None


def evaluated_return(row: dict) -> float | None:
    """Return the team return in evaluation."""
    return row.get("evaluation_return")


def gold_share(row: dict) -> float | None:
    """Return the gold mined in evaluation, in % of all."""
    return 100 * row["evaluation_gold_mined"] / ALL_GOLD if "evaluation_gold_mined" in row else None


def budget_used(row: dict) -> float | None:
    """Return the successful requests so far, in % of the budget."""
    return 100 * (1 - float(np.mean(row["requests_left"])) / BUDGET) if "requests_left" in row else None


PANELS = [
    ("team return, greedy", evaluated_return),
    ("gold mined, % of all", gold_share),
    ("requests used, % of budget", budget_used),
]


def draw_method(axis, runs: list[list[dict]], value, name: str, colour: str) -> None:
    """Draw every run as a thin line, their mean as a thick one, and its interval as a band."""
    episodes, values = series(runs, value)
    thousands, values = episodes / 1000, smoothed(values)
    mean, half = values.mean(axis=0), interval(values)
    axis.plot(thousands, values.T, color=colour, linewidth=0.7, alpha=0.5)
    axis.plot(thousands, mean, color=colour, linewidth=2.2, label=f"{name} ({len(runs)} seeds)")
    if half is not None:
        axis.fill_between(thousands, mean - half, mean + half, color=colour, alpha=0.09, linewidth=0)


def draw() -> None:
    """Draw one row of panels for each exploration."""
    figure, axes = plt.subplots(2, 3, figsize=(14, 8), layout="constrained")
    for row, (family, methods) in zip(axes, FAMILIES.items(), strict=True):
        for axis, (label, value) in zip(row, PANELS, strict=True):
            for name, folder, kind, colour in methods:
                runs = runs_of(folder, kind)
                if runs and value(runs[0][-1]) is not None:
                    draw_method(axis, runs, value, name, colour)
            axis.set(ylabel=label, xlabel="thousand episodes", ylim=(-3, 103) if "%" in label else (-18, 20))
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
            axis.axvline(5, color="black", linewidth=0.8, linestyle=":")
        row[0].axhline(0, color="black", linewidth=0.6)
        row[0].set_title(family, loc="left", fontweight="bold")
        row[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(HERE / "curves.png", dpi=110)


def print_table() -> None:
    """Print the means of the last five evaluations, by run."""
    print("| exploration | method | team return by seed | mean ± 95 % | gold | budget used |")
    print("|---|---|---|---|---|---|")
    for family, methods in FAMILIES.items():
        for name, folder, kind, _ in methods:
            runs = runs_of(folder, kind)
            if not runs:
                continue
            finals, golds = (series(runs, value)[1][:, -WINDOW:].mean(axis=1) for _, value in PANELS[:2])
            half = interval(finals[:, None])
            used = [budget_used(rows[-1]) for rows in runs]
            spent = "–" if used[0] is None else f"{np.mean(used):.0f} %"
            mean = f"{finals.mean():.1f}" + ("" if half is None else f" ± {half[0]:.1f}")
            seeds = ", ".join(f"{value:.1f}" for value in finals)
            line = f"| {family} | {name} | {seeds} | {mean} | {golds.mean():.0f} % | {spent} |"
            print(line.replace("-", "−").replace("ε−", "ε-").replace("εz−", "εz-"))


if __name__ == "__main__":
    draw()
    print_table()
