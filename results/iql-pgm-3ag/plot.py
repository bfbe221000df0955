"""Draw the curves from the committed rows: `python results/iql-pgm-3ag/plot.py` (needs matplotlib)."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
STYLES = {"epsilon-greedy": ("ε-greedy", "#0072B2"), "epsilon-z-greedy": ("εz-greedy", "#D55E00")}


def curves(kind: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the episodes of evaluations, and a metric's values [run, evaluation]."""
    runs = []
    for path in sorted(HERE.glob(f"{kind}-[0-9]*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        runs.append([(row["episode"], row[name]) for row in rows if name in row])
    table = np.array(runs)  # [run, evaluation, (episode, value)]
    return table[0, :, 0], table[:, :, 1]


def main() -> None:
    """Draw every run as a thin line and their mean as a thick one."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    panels = (("evaluation_return", "team return", 1), ("evaluation_gold_mined", "gold mined, of 3", 1))
    for axis, (name, label, scale) in zip(axes, panels, strict=True):
        for kind, (title, colour) in STYLES.items():
            episodes, values = curves(kind, name)
            axis.plot(episodes, values.T * scale, color=colour, alpha=0.3, linewidth=0.8)
            axis.plot(episodes, values.mean(axis=0) * scale, color=colour, linewidth=2, label=title)
        axis.set(xlabel="episodes", ylabel=label)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].axhline(0, color="black", linewidth=0.6)
    axes[0].legend(title="IQL on pgm-3ag, 3 seeds", frameon=False)
    figure.savefig(HERE / "curves.png", dpi=120)


if __name__ == "__main__":
    main()
