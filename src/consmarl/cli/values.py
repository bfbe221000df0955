"""The values that a run's settings really have, where the configuration leaves them to method, preset or world."""

from typing import Any

from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.config import TrainConfig


def real_values(config: TrainConfig) -> dict[str, Any]:
    """Return every setting's value by name, such as share.temperature; None where only the world itself knows."""
    return every_setting(config.resolved())
