"""What teams open and take in Find the Treasure, since when it pays, and how many requests they had made before."""

from collections.abc import Mapping, Sequence

import numpy as np
from results.collecting import Run, percent, table
from results.paper.milestones import held_since, requests_until, since
from results.paper.run import LABELS

PAYS = -1.0  # team return above which boxes pay; a team that opens none has −2
# Counters: how they are called, and how many there are in an episode.
COUNTED = {
    "yellow_opened": ("yellow boxes opened", 3),
    "red_opened": ("red boxes opened", 6),
    "coins_taken": ("coins taken", 3),
    "treasures_taken": ("treasure taken", 1),
}
# The same of the released weights: 300 greedy episodes each in the authors' own environment.
RELEASED_SHARES = {
    "CONS": (0.30, 0.49, 0.30, 0.64),
    "AdHocTD": (0.22, 0.47, 0.22, 0.60),
    "IQL": (0.33, 0.44, 0.33, 0.55),
    "MAVEN": (0.04, 0.14, 0.02, 0.13),
}


def found_boxes(by_variant: Mapping[str, Sequence[Run]]) -> str:
    """Return how much of what there is teams open and take, as in figure 6."""
    rows = []
    for variant, group in by_variant.items():
        shares_of = [np.mean([run[counter] for run in group]) / most for counter, (_, most) in COUNTED.items()]
        rows.append([LABELS[variant], str(len(group)), *(percent(float(share)) for share in shares_of)])
    rows += [
        [f"*the authors' released weights of {method}*", "–", *(percent(share) for share in there)]
        for method, there in RELEASED_SHARES.items()
    ]
    return table(("variant", "n", *(label for label, _ in COUNTED.values())), rows)


def pays_since(run: Run) -> int | None:
    """Return the episode since which boxes pay; None if they never do."""
    episodes = [episode for episode, _ in run["evaluations"]]
    return held_since(episodes, np.array([[team] for _, team in run["evaluations"]]) > PAYS)


def paying(by_variant: Mapping[str, Sequence[Run]]) -> str:
    """Return since when boxes pay, and how many requests each agent had made before, by variant and seed."""
    rows = []
    for variant, group in by_variant.items():
        first = [pays_since(run) for run in group]
        seeds = ", ".join(str(run["seed"]) for run in group)
        rows.append([LABELS[variant], seeds, since(first), requests_until(group, first)])
    head = ("variant", "seeds", "boxes pay since episode, by seed", "requests per agent before, by seed")
    return table(head, rows)
