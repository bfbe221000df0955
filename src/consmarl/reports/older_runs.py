"""The metrics of older runs, which did not record declarations of their metrics."""

from collections.abc import Mapping
from typing import Any

from consmarl.environments.counted import CLEANUP_METRICS, gold_miner_metrics, treasure_metrics
from consmarl.metrics import EPISODE_STEPS, EPSILON, GRADIENT_NORM, LOSS, Q_VALUE, RETURN, TD_ERROR, Schema
from consmarl.sharing import reported

BOXES = {"yellow": 3, "red": 6, "green": 0}
WORLDS_WITH_BOXES = ("ft", "ft-20")


def schema_of_older_run(config: Mapping[str, Any]) -> Schema:
    """Return the schema that an older run's settings imply."""
    is_known = config.get("env") in WORLDS_WITH_BOXES and not config.get("set")
    return OF_KNOWN_BOXES if is_known else OF_ANY_WORLD


def _schema(boxes: Mapping[str, int]) -> Schema:
    counters = (*gold_miner_metrics(), *treasure_metrics(boxes), *CLEANUP_METRICS)
    learned = (LOSS, TD_ERROR, Q_VALUE, GRADIENT_NORM, EPSILON)
    return Schema((RETURN, *counters, EPISODE_STEPS, *learned, *reported.METRICS))


OF_KNOWN_BOXES, OF_ANY_WORLD = _schema(BOXES), _schema(dict.fromkeys(BOXES, 0))
