"""Since when something holds in a run, and how many requests its agents had made before."""

from collections.abc import Sequence

import numpy as np
from results.collecting import Run

NUM_HELD = 3  # evaluations in a row at which it has to hold, the first of which counts


def held_since(episodes: Sequence[int], holds: np.ndarray) -> int | None:
    """Return the episode since which it holds for somebody; None if it never does. `holds` is [evaluation, agent]."""
    held = [np.all(holds[at : at + NUM_HELD], axis=0).any() for at in range(len(holds) - NUM_HELD + 1)]
    return episodes[held.index(True)] if True in held else None


def since(found: Sequence[int | None]) -> str:
    """Return episodes, one per seed, as text."""
    return ", ".join("never" if at is None else f"{at:,}" for at in found)


def requests_until(group: Sequence[Run], episodes: Sequence[int | None]) -> str:
    """Return the requests per agent until an episode, or all of them for None, by seed, as text."""
    if "budget_used" not in group[0]:
        return "–"
    spent = [{0: 0.0} | dict(run["budget_used"]) for run in group]  # the first row follows the first episodes
    return ", ".join(f"{each[max(each) if at is None else at]:,.0f}" for each, at in zip(spent, episodes, strict=True))
