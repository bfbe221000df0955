"""The counters of our environments, declared separately so that reports on older runs do not need JAX."""

from collections.abc import Mapping

from consmarl.metrics import Metric

CLEANUP_METRICS = (
    Metric("apples_eaten", unit="apples", more_is_better=True),
    Metric("waste_cleaned", unit="cells", more_is_better=True),
)


def gold_miner_metrics(most_gold: int = 0, most_stones: int = 0) -> tuple[Metric, ...]:
    """Return the counters of Patient Gold Miner; 0 for amounts that are zero or unknown."""
    return (
        Metric("gold_mined", unit="gold", more_is_better=True, most=most_gold or None),
        Metric("stones_taken", unit="stones", most=most_stones or None),
    )


def treasure_metrics(boxes: Mapping[str, int]) -> tuple[Metric, ...]:
    """Return the counters of Find the Treasure with this many boxes of each kind; 0 if unknown."""
    num_coins, num_treasures = boxes.get("yellow", 0), sum(boxes.get(kind, 0) > 0 for kind in ("red", "green"))
    return (
        *(Metric(f"{kind}_opened", f"{kind.capitalize()} boxes opened", unit="boxes", part_of="opened",
                 most=count or None) for kind, count in boxes.items()),
        Metric("coins_taken", unit="coins", more_is_better=True, part_of="items_taken", most=num_coins or None),
        Metric("treasures_taken", unit="treasures", more_is_better=True, part_of="items_taken",
               most=num_treasures or None),
        Metric("opened", "Boxes opened", unit="boxes", most=sum(boxes.values()) or None),
        Metric("items_taken", unit="items", more_is_better=True, most=num_coins + num_treasures or None),
    )  # fmt: skip
