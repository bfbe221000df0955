"""Whether returns decline in the middle of a run, and whether they recover."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from results.collecting import Run, numbers, table
from results.paper.run import LABELS

NUM_AVERAGED = 5  # evaluations in a row, so that a single unlucky one does not count
MIDDLE = (0.25, 0.75)  # of a run: where a decline has to have its lowest point


class Decline(NamedTuple):
    """The largest fall of a smoothed learning curve below its own earlier height, in the middle of a run."""

    height: float  # before
    depth: float  # how far it falls from there; 0 if it never does
    episode: int  # of the lowest point
    end: float  # the height at the end of the run


def decline(run: Run) -> Decline:
    """Return the largest decline of a run."""
    episodes, returns = np.array(run["evaluations"]).T
    smooth = np.convolve(returns, np.full(NUM_AVERAGED, 1 / NUM_AVERAGED), mode="valid")
    centres = episodes[NUM_AVERAGED // 2 :][: len(smooth)]
    heights = np.maximum.accumulate(smooth)
    falls = heights - smooth
    low, high = (share * episodes[-1] for share in MIDDLE)
    falls = np.where((low <= centres) & (centres <= high), falls, 0.0)
    lowest = int(np.argmax(falls))
    return Decline(float(heights[lowest]), float(falls[lowest]), int(centres[lowest]), float(smooth[-1]))


def declines(by_variant: Mapping[str, Sequence[Run]]) -> str:
    """Return the declines of all runs, by variant and seed."""
    rows = []
    for variant, group in by_variant.items():
        found = [decline(run) for run in group]
        falls = ", ".join(f"{each.height:.0f} → {each.height - each.depth:.0f} ({each.episode:,})" for each in found)
        depth = f"{np.mean([each.depth for each in found]):.1f}"
        rows.append([LABELS[variant], numbers((run["seed"] for run in group), 0), falls, depth,
                     numbers((each.end for each in found), 0)])  # fmt: skip
    head = ("variant", "seeds", "largest decline (episode of its lowest point), by seed", "mean depth", "at the end")
    return table(head, rows)
