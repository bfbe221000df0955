"""The values that a run's settings really have, where the configuration leaves them to method, preset or world."""

from typing import Any

from consmarl.experiments.config import TrainConfig
from consmarl.experiments.reading import every_setting
from consmarl.experiments.sharing_options import options_of


def real_values(config: TrainConfig) -> dict[str, Any]:
    """Return every setting's value by name, such as share.temperature; None where only the world itself knows."""
    return every_setting(config.resolved())


def has_setting(config: TrainConfig, name: str) -> bool:
    """Whether a setting means anything to this run's method and sharing."""
    group, _, option = name.rpartition(".")
    if group == "share":
        return option in options_of(config.sharing_kind)
    if group == "learn" or name in ("weights", "reward_of"):
        return config.entry.has(option)
    if name in ("sharing", "exploration"):
        return config.entry.is_value_based
    if name in ("batch_episodes", "replay_episodes", "warmup_steps"):
        return not config.entry.learner.is_on_policy
    return True
