"""The effective values of a run's settings, including those set by the method, preset or environment."""

from typing import Any

from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.config import TrainConfig


def real_values(config: TrainConfig) -> dict[str, Any]:
    """Return every setting's value by name, such as share.temperature; None if it depends on the built environment."""
    return every_setting(config.resolved())
