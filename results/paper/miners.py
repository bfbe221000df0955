"""Who mines gold in Patient Gold Miner, since when, and how many requests the team had made before."""

from collections.abc import Mapping, Sequence

import numpy as np
from results.collecting import Run, table
from results.paper.milestones import held_since, requests_until, since
from results.paper.run import LABELS

MINES = 0.0  # return per training episode above which an agent mines: without gold it is about −1.6 or −4
NUM_LAST = 10  # evaluations at the end, whose mean says whether an agent still mines
# Agents with a positive return among the authors' released weights: 1,000 greedy episodes each in our environments.
RELEASED_MINERS = {
    "pgm-3ag": {"CONS": (3, 3), "AdHocTD": (2, 3), "IQL": (1, 3)},
    "pgm-6ag": {"CONS": (3, 6), "AdHocTD": (1, 6), "IQL": (1, 6)},
}


def num_miners(run: Run) -> int:
    """Return how many agents mine at the end of a run."""
    last = np.mean([earned for _, earned in run["agent_returns"][-NUM_LAST:]], axis=0)
    return int(np.sum(last > MINES))


def first_mining(run: Run) -> int | None:
    """Return the episode since which somebody mines; None if nobody does."""
    episodes = [episode for episode, _ in run["agent_returns"]]
    return held_since(episodes, np.array([earned for _, earned in run["agent_returns"]]) > MINES)


def miners(world: str, by_variant: Mapping[str, Sequence[Run]]) -> str:
    """Return who mines, by variant and seed."""
    rows = []
    for variant, group in by_variant.items():
        first = [first_mining(run) for run in group]
        counts = [num_miners(run) for run in group]
        num_agents = len(group[0]["agent_returns"][0][1])
        seeds = ", ".join(str(run["seed"]) for run in group)
        counted = f"{', '.join(map(str, counts))} of {num_agents}"
        rows.append([LABELS[variant], seeds, counted, f"{np.mean(counts) / num_agents:.2f}", since(first),
                     requests_until(group, first)])  # fmt: skip
    for method, (count, num_agents) in RELEASED_MINERS[world].items():
        label = f"*the authors' released weights of {method}*"
        rows.append([label, "–", f"{count} of {num_agents}", f"{count / num_agents:.2f}", "–", "–"])
    head = ("variant", "seeds", "agents that mine, by seed", "share", "somebody mines since episode, by seed",
            "requests per agent before, by seed")  # fmt: skip
    return table(head, rows)
