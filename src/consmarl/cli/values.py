"""The effective values of a run's settings, including those that the method, preset or environment decides."""

from typing import Any

from consmarl.experiments.configuration.as_json import every_setting
from consmarl.experiments.configuration.config import TrainConfig


def real_values(config: TrainConfig) -> dict[str, Any]:
    """Return every setting's value by name, such as share.temperature; None if only the environment can tell."""
    return every_setting(config.resolved())
