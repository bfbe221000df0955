"""What the same compute buys: runs with the paper's settings beside runs with the preset `recommended`.

    python -m results.paper.compute    # takes six minutes, on one core with nothing beside it

measures how long a training episode takes on this machine, and writes compute.json. `collect.py` makes the table and
the figure from that file and from the recorded runs of this folder, of results/learning and of results/sharing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.time_to_return import milliseconds
from results.collecting import Run, groups, lines_of, table, with_interval
from results.paper.run import EPISODES

from consmarl import Preset

HERE = Path(__file__).parent
MEASURED = HERE / "compute.json"
METHODS = {"iql": "IQL", "cons": "CONS"}
PRESETS = (Preset.PAPER, Preset.RECOMMENDED)
# Recorded runs with the preset `recommended`, by folder and variant: their method, and what to add to its name.
RECOMMENDED = {
    ("sharing", "iql"): ("iql", ""),
    ("sharing", "cons"): ("cons", ""),
    ("learning", "recommended"): ("iql", ""),
    ("learning", "former"): ("iql", " (former schedule)"),
}
FEWEST = 3  # seeds: groups with fewer are not shown

Milliseconds = Mapping[str, Mapping[str, Mapping[str, float]]]  # by environment, preset and method


class Row(NamedTuple):
    """Runs that differ only in their seeds."""

    preset: Preset
    method: str
    label: str
    runs: Sequence[Run]


def _rows(world: str, by_variant: Mapping[str, list[Run]]) -> Iterator[Row]:
    for method, label in METHODS.items():
        if method in by_variant:
            yield Row(Preset.PAPER, method, label, by_variant[method])
    for folder in ("sharing", "learning"):
        recorded = json.loads((HERE.parent / folder / "runs.json").read_text())
        for (there, variant, _), runs in groups(recorded).items():
            if there == world and (folder, variant) in RECOMMENDED and len(runs) >= FEWEST:
                method, more = RECOMMENDED[folder, variant]
                yield Row(Preset.RECOMMENDED, method, f"{METHODS[method]}{more}", runs)


def _minutes_per_episode(world: str, row: Row) -> float:
    took: Milliseconds = json.loads(MEASURED.read_text())
    return took[world][row.preset.value][row.method] / 60_000


def _shortest_first(row: Row) -> tuple[bool, int, int]:
    return row.preset is not Preset.PAPER, row.runs[0]["episodes"], list(METHODS).index(row.method)


def compute(worlds: Mapping[str, Mapping[str, list[Run]]]) -> str:
    """Return final returns and minutes of one core: the paper's settings, and today's recommended ones."""
    cells = []
    for world in EPISODES:
        for row in sorted(_rows(world, worlds.get(world, {})), key=_shortest_first):
            episodes = row.runs[0]["episodes"]
            minutes = episodes * _minutes_per_episode(world, row)
            finals = [float(run["return"]) for run in row.runs]
            cells.append([f"`{world}`", row.preset.value, row.label, str(len(finals)), f"{episodes:,}",
                          f"{minutes:.1f}", with_interval(finals)])  # fmt: skip
    head = ("environment", "preset", "method", "n", "episodes", "minutes of one core", "final return, mean [95 %]")
    return table(head, cells)


def draw_compute(path: Path, worlds: Mapping[str, Mapping[str, list[Run]]]) -> None:
    """Draw learning curves over minutes of one core, a panel for each environment; thin lines are seeds."""
    figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    styles = {Preset.PAPER: "--", Preset.RECOMMENDED: "-"}
    colours = {"iql": "C0", "cons": "C1"}
    for world, axis in zip(EPISODES, panels.flat, strict=True):
        for row in _rows(world, worlds.get(world, {})):
            episodes, returns = np.array([run["evaluations"] for run in row.runs]).T
            look = {"color": colours[row.method], "linestyle": styles[row.preset]}
            minutes = episodes[1:, 0] * _minutes_per_episode(world, row)  # a logarithmic axis has no 0
            axis.plot(minutes, returns[1:], **look, alpha=0.2, linewidth=0.7)
            label = f"{METHODS[row.method]}, {row.preset.value}"
            axis.plot(minutes, returns[1:].mean(axis=1), **look, linewidth=2, label=label)
        for (label, level), style in zip(lines_of(world).items(), ("--", ":"), strict=True):
            axis.axhline(level, color="black", linestyle=style, linewidth=1, label=label)
        axis.set(title=world, xscale="log", xlabel="minutes of one core", ylabel="team return, greedy")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    labels = {
        label: line for axis in panels.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(labels.values(), labels, frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def measure() -> Milliseconds:
    """Return the duration of a training episode on one core of this machine."""
    return {
        world: {
            preset.value: {method: round(milliseconds(world, method, preset), 2) for method in METHODS}
            for preset in PRESETS
        }
        for world in EPISODES
    }


if __name__ == "__main__":
    MEASURED.write_text(json.dumps(measure(), indent=2) + "\n")
