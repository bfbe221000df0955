"""What rows of metrics hold, in words and in the order in which a reader wants them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from consmarl.report.runs import Run

EVALUATION, TRAINING, LEARNING, SHARING = "Greedy evaluation", "Training", "Learning", "Sharing"

TITLES = {
    "return": "Return", "gold_mined": "Gold mined", "stones_taken": "Stones taken",
    "yellow_opened": "Yellow boxes opened", "red_opened": "Red boxes opened", "green_opened": "Green boxes opened",
    "coins_taken": "Coins taken", "treasures_taken": "Treasures taken", "opened": "Boxes opened",
    "items_taken": "Items taken", "apples_eaten": "Apples eaten", "waste_cleaned": "Waste cleaned",
    "episode_steps": "Steps per episode",
    "loss": "Loss", "td_error": "TD error", "q_value": "Q-value", "gradient_norm": "Gradient norm", "epsilon": "ε",
    "budget_used": "Requests spent per agent", "advised_share": "Share of actions that were advised",
    "requests": "Requests per episode", "answers": "Answers per episode", "advised": "Advised actions per episode",
    "num_observations": "Different observations met", "table_fill": "Share of the counting table that is filled",
}  # fmt: skip
FAMILY_OF = dict.fromkeys(("loss", "td_error", "q_value", "gradient_norm", "epsilon"), LEARNING) | dict.fromkeys(
    ("budget_used", "advised_share", "requests", "answers", "advised", "num_observations", "table_fill"), SHARING
)
FAMILIES = (EVALUATION, TRAINING, LEARNING, SHARING)
NOT_CURVES = {"episode", "env_steps", "seconds", "evaluation_return_error"}
# Totals that say less than their parts, which are there as well.
TOTALS = {"opened", "items_taken"}
PARTS = {"yellow_opened", "red_opened", "coins_taken", "treasures_taken"}


class Metric(NamedTuple):
    """A number that rows hold again and again."""

    name: str
    title: str
    family: str


def metric(name: str) -> Metric:
    """Return a metric by the name that it has in the rows."""
    bare = name.removeprefix("evaluation_")
    title = TITLES.get(bare, bare.replace("_", " ").capitalize())
    if bare != name:
        return Metric(name, title, EVALUATION)
    family = FAMILY_OF.get(name) or (LEARNING if name.endswith(("_loss", "_norm", "_error")) else TRAINING)
    return Metric(name, title, family)


def metrics_of(runs: "Iterable[Run]") -> list[Metric]:
    """Return the metrics of these runs that make curves: family by family, known ones first."""
    is_number: dict[str, bool] = {}  # the first value tells: looking at all of a hundred runs takes seconds
    for run in runs:
        for row in run.rows:
            for name in row.keys() - is_number.keys():
                is_number[name] = isinstance(row[name], int | float)
    names = {name for name, is_curve in is_number.items() if is_curve} - NOT_CURVES
    order = list(TITLES)

    def place(each: Metric) -> tuple[int, int, str]:
        bare = each.name.removeprefix("evaluation_")
        return FAMILIES.index(each.family), order.index(bare) if bare in order else len(order), each.name

    return sorted((metric(name) for name in names if not _is_told_in_parts(name, names)), key=place)


def counters_of(names: Iterable[str]) -> list[str]:
    """Return which of these are counters of a world, in a reader's order; totals only where their parts are missing."""
    known = [name for name in TITLES if name not in FAMILY_OF and name not in ("return", "episode_steps")]
    found = [name for name in known if name in set(names)]
    return [name for name in found if not _is_told_in_parts(name, set(found))]


def _is_told_in_parts(name: str, names: set[str]) -> bool:
    bare = name.removeprefix("evaluation_")
    prefix = name.removesuffix(bare)
    return bare in TOTALS and any(prefix + part in names for part in PARTS)
