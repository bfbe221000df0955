"""What the same compute buys: runs with the paper's settings beside runs with the preset `recommended`.

    python -m results.paper.compute    # takes six minutes, on one core with nothing beside it

measures how long a training episode takes on this machine, and writes compute.json. `collect.py` makes the table from
that file and from the recorded runs of this folder, of results/learning and of results/sharing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.time_to_return import milliseconds
from results.collecting import Run, groups, table, with_interval
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


def _shortest_first(row: Row) -> tuple[bool, int, int]:
    return row.preset is not Preset.PAPER, row.runs[0]["episodes"], list(METHODS).index(row.method)


def compute(worlds: Mapping[str, Mapping[str, list[Run]]]) -> str:
    """Return final returns and minutes of one core: the paper's settings, and today's recommended ones."""
    took: Milliseconds = json.loads(MEASURED.read_text())
    cells = []
    for world in EPISODES:
        for row in sorted(_rows(world, worlds.get(world, {})), key=_shortest_first):
            episodes = row.runs[0]["episodes"]
            minutes = episodes * took[world][row.preset.value][row.method] / 60_000
            finals = [float(run["return"]) for run in row.runs]
            cells.append([f"`{world}`", row.preset.value, row.label, str(len(finals)), f"{episodes:,}",
                          f"{minutes:.1f}", with_interval(finals)])  # fmt: skip
    head = ("environment", "preset", "method", "n", "episodes", "minutes of one core", "final return, mean [95 %]")
    return table(head, cells)


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
